module castle.test/real/agevectors

go 1.25.0

require c2sp.org/CCTV/age v0.0.0-20240306222714-3ec4d716e805
