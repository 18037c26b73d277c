package frame

import "loam/wire"

// A GRE header contains the optional words for which the template names a field: "gre key=7" has a key and no sequence
// number; "gre checksum=auto" has a checksum, which is computed.

// greKind returns the kind of a GRE layer. has is a function that reports which optional
// fields the template gives.
func greKind(has func(field string) bool) *kind {
	h := wire.GRE{Type: typeTest, HasChecksum: has("checksum"), HasKey: has("key"), HasSequence: has("seq")}
	k := &kind{
		name: "gre", summary: "GRE", fields: []field{{"type", 16, 16, number}}, length: h.Len(),
		put:     h.Put,
		carries: greType, next: "type", numbers: map[space]uint64{proto4: uint64(wire.ProtoGRE), proto6: uint64(wire.ProtoGRE)},
	}
	bit := 8 * wire.GREMinLen
	if h.HasChecksum {
		k.fields = append(k.fields, field{"checksum", bit, 16, number})
		k.sum = sumRule{at: wire.GREMinLen}
		bit += 32
	}
	if h.HasKey {
		k.fields = append(k.fields, field{"key", bit, 32, number})
		bit += 32
	}
	if h.HasSequence {
		k.fields = append(k.fields, field{"seq", bit, 32, number})
	}
	return k
}
