module rushes.interop/pion

go 1.24.0

require github.com/pion/rtp v1.10.6

require github.com/pion/randutil v0.1.0 // indirect
