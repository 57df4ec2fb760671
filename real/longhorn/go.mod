module castle.test/real/longhorn

go 1.26.0

require github.com/longhorn/longhorn-manager v1.10.0
