package amd64

// Segment selectors of ring 0. SYSCALL uses the descriptor after the code segment as the stack segment, so the data
// segment follows the code segment (SDM volume 3, 5.8.8).
const (
	CodeSelector = 1 << 3
	DataSelector = 2 << 3
	TaskSelector = 3 << 3
)

// Segment selectors of ring 3. They have the same values as on Linux, where programs can read them. SYSRET computes
// both from one base (SDM volume 2, SYSRET): the stack segment is base + 8, the code segment base + 16.
const (
	UserBase         = 4<<3 | ring3
	UserDataSelector = 5<<3 | ring3
	UserCodeSelector = 6<<3 | ring3

	ring3 = 3 // requested privilege level
)

// GDT is the global descriptor table of one CPU: SDM volume 3, 3.4.5 and 8.2.3.
type GDT [7]uint64

// NewGDT returns a table with flat code and data segments for ring 0, the task state segment at address task (two
// entries), and flat segments for ring 3.
func NewGDT(task uintptr) GDT {
	const (
		code = 0x00af_9b00_0000_ffff // present, ring 0, executable, readable, accessed, 64 bit
		data = 0x00cf_9300_0000_ffff // present, ring 0, writable, accessed
		tss  = 0x0000_8900_0000_0000 // present, 64-bit TSS, available
		user = 0x0000_6000_0000_0000 // ring 3
	)
	base := uint64(task)
	return GDT{
		CodeSelector >> 3:   code,
		DataSelector >> 3:   data,
		TaskSelector >> 3:   tss | (TaskSize - 1) | base&0xff_ffff<<16 | base>>24&0xff<<56,
		TaskSelector>>3 + 1: base >> 32,

		UserDataSelector >> 3: data | user,
		UserCodeSelector >> 3: code | user,
	}
}

// The task state segment: SDM volume 3, 8.7. Only its interrupt stack table is used, which has the stacks for interrupt
// handlers.
const (
	TaskSize      = 104
	TaskStacks    = 0x24 // offset of the first of seven stack addresses of 8 bytes
	TaskMapOffset = 0x66 // offset of the 2-byte offset of the I/O permission map; TaskSize there means no map
)

// Gate is an entry of the interrupt descriptor table: SDM volume 3, 6.14.1.
type Gate [2]uint64

// NewGate returns an interrupt gate, which disables interrupts in the handler. stack is an index into the interrupt
// stack table, 1 to 7.
func NewGate(handler uintptr, stack int) Gate {
	const interrupt = 0x8e00_0000_0000 // present, ring 0, 64-bit interrupt gate
	h := uint64(handler)
	return Gate{
		interrupt | h&0xffff | h>>16&0xffff<<48 | CodeSelector<<16 | uint64(stack)<<32,
		h >> 32,
	}
}

// ForUser returns a copy of the gate that INT instructions in ring 3 may use. Without this right, an INT causes a
// general-protection fault.
func (g Gate) ForUser() Gate {
	const level3 = 3 << 45
	g[0] |= level3
	return g
}
