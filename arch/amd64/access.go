package amd64

// load32 and store32 access a memory-mapped register by exactly one instruction. They are not inlined, so the compiler
// neither splits nor merges nor removes an access. store32 does not use sync/atomic, whose store is an XCHG
// instruction: an emulator stops all CPUs for an XCHG on a device register.

//go:noinline
func load32(p *uint32) uint32 { return *p }

//go:noinline
func store32(p *uint32, v uint32) { *p = v }
