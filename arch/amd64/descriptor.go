package amd64

// Segment selectors. The code segment comes first because SYSCALL takes the
// stack segment from the entry behind it (SDM volume 3, 5.8.8).
const (
	CodeSelector = 1 << 3
	DataSelector = 2 << 3
	TaskSelector = 3 << 3
)

// GDT is the global descriptor table of one CPU: SDM volume 3, 3.4.5 and 8.2.3.
type GDT [5]uint64

// NewGDT is a flat code and data segment for ring 0 and the task at base, whose
// descriptor takes two entries.
func NewGDT(task uintptr) GDT {
	const (
		code = 0x00af_9b00_0000_ffff // present, ring 0, executable, readable, accessed, 64 bit
		data = 0x00cf_9300_0000_ffff // present, ring 0, writable, accessed
		tss  = 0x0000_8900_0000_0000 // present, 64-bit TSS, available
	)
	base := uint64(task)
	return GDT{
		CodeSelector >> 3:   code,
		DataSelector >> 3:   data,
		TaskSelector >> 3:   tss | (TaskSize - 1) | base&0xff_ffff<<16 | base>>24&0xff<<56,
		TaskSelector>>3 + 1: base >> 32,
	}
}

// The task state segment: SDM volume 3, 8.7. Of it only the interrupt stack
// table is used: the stacks that interrupts switch to.
const (
	TaskSize      = 104
	TaskStacks    = 0x24 // offset of the first of seven addresses of 8 bytes
	TaskMapOffset = 0x66 // offset of 2 bytes: where the port map begins; TaskSize means none
)

// Gate is an entry of the interrupt descriptor table: SDM volume 3, 6.14.1.
type Gate [2]uint64

// NewGate is an interrupt gate: interrupts are off in the handler. The stack is
// 1 to 7.
func NewGate(handler uintptr, stack int) Gate {
	const interrupt = 0x8e00_0000_0000 // present, ring 0, 64-bit interrupt gate
	h := uint64(handler)
	return Gate{
		interrupt | h&0xffff | h>>16&0xffff<<48 | CodeSelector<<16 | uint64(stack)<<32,
		h >> 32,
	}
}
