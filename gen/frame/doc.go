// Package frame builds the frames that a generator sends. The user writes a template: a list of layers, whose fields
// may change from frame to frame. The package turns it into frames with correct lengths and checksums, and writes each
// frame into memory that the caller provides.
//
// Reading order: template.go (what a user writes), layers.go (the table of layers and fields), pattern.go (how a
// field changes), size.go (frame sizes), compile.go (a template becomes a program), checksum.go, crc.go and
// filler.go (the program writes frames).
//
// A template is text with one layer per line, or with layers separated by semicolons. Each layer lists the fields
// that differ from their defaults:
//
//	eth dst=02:00:00:00:00:02
//	vlan id=100-199
//	ip src=10.0.0.1 dst=10.1.0.0/16 ttl=random
//	udp sport=1024+7 dport=53
//	payload text="hello"
//
// Types, lengths and checksums that the template does not give are computed. Given values are sent unchanged, even if
// they are wrong, because sending malformed frames is one purpose of the package.
//
// The package reads no clock and sends nothing. Random fields come from a seed, and the same seed produces the same
// frames.
package frame
