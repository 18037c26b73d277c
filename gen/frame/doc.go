// Package frame makes the frames that a generator sends: from a template of
// layers, whose fields may change from frame to frame, to bytes in the slot of a
// ring, with lengths and checksums right.
//
// Read in this order: template.go (what a user writes), layers.go (the table of
// layers and fields), pattern.go (how a field changes), size.go, compile.go (a
// template becomes a program), filler.go (the program writes frames).
//
// A template is text, one layer a line or divided by semicolons, each with the
// fields that are not to have their usual value:
//
//	eth dst=02:00:00:00:00:02
//	vlan id=100-199
//	ip src=10.0.0.1 dst=10.1.0.0/16 ttl=random
//	udp sport=1024+7 dport=53
//	payload text="hello"
//
// Types, lengths and checksums that are not given are computed. What is given is
// sent as it is, even if it is wrong: to send wrong frames is a use of this.
//
// Nothing here reads a clock or sends; random fields come from a seed, and the
// same seed makes the same frames.
package frame
