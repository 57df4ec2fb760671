module castle.test/real/external-secrets

go 1.26.0

require github.com/external-secrets/external-secrets v1.3.2
