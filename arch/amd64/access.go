package amd64

// load32 and store32 reach a register in memory, by one instruction each: the
// compiler neither splits, nor joins, nor leaves out what a function does that it
// does not inline. The store is not that of sync/atomic, an exchange, for which
// emulators stop all CPUs.

//go:noinline
func load32(p *uint32) uint32 { return *p }

//go:noinline
func store32(p *uint32, v uint32) { *p = v }
