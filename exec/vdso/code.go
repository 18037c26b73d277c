package vdso

import "encoding/binary"

// A small assembler. Instructions are written as bytes (Intel SDM, volume 2). Jumps and addresses of data are patched
// when the positions of all labels are known.

// code is machine code with labels.
type code struct {
	bytes  []byte
	labels map[string]int
	holes  []hole
}

// hole is a place in the code, at offset at, for a 32-bit displacement to a label, which link fills in. The
// displacement is relative to the end of these four bytes.
type hole struct {
	at    int
	label string
}

func (c *code) label(name string) { c.labels[name] = len(c.bytes) }

func (c *code) emit(b ...byte) { c.bytes = append(c.bytes, b...) }

// to emits an instruction whose last four bytes are the displacement to a label.
func (c *code) to(label string, opcode ...byte) {
	c.emit(opcode...)
	c.holes = append(c.holes, hole{len(c.bytes), label})
	c.emit(0, 0, 0, 0)
}

// Jumps with 32-bit displacements.
func (c *code) jump(label string)      { c.to(label, 0xe9) }
func (c *code) call(label string)      { c.to(label, 0xe8) }
func (c *code) ifZero(label string)    { c.to(label, 0x0f, 0x84) }
func (c *code) ifNot(label string)     { c.to(label, 0x0f, 0x85) }
func (c *code) ifAbove(label string)   { c.to(label, 0x0f, 0x87) }
func (c *code) ifNoCarry(label string) { c.to(label, 0x0f, 0x83) }

// link fills in the displacements. others holds the labels outside the code, with their distance from the start of the
// code.
func (c *code) link(others map[string]int) {
	for _, h := range c.holes {
		target, ok := c.labels[h.label]
		if !ok {
			target, ok = others[h.label]
		}
		if !ok {
			panic("vdso: no label " + h.label)
		}
		binary.LittleEndian.PutUint32(c.bytes[h.at:], uint32(int32(target-h.at-4)))
	}
}

// Numbers of the system calls that the functions make if they cannot read a clock themselves.
const (
	sysGettimeofday = 96
	sysClockGettime = 228
	sysGetCPU       = 309
)

// system emits a system call, which gets the function's arguments unchanged, and a return instruction.
func (c *code) system(number uint16) {
	c.emit(0xb8, byte(number), byte(number>>8), 0, 0) // mov eax, number
	c.emit(0x0f, 0x05)                                // syscall
	c.emit(0xc3)                                      // ret
}

// functions returns the code of all functions of the vDSO. Each function's name is a label.
func functions() *code {
	c := &code{labels: map[string]int{}}
	c.clockGettime()
	c.gettimeofday()
	c.time()
	c.getCPU()
	return c
}

// clockGettime is int __vdso_clock_gettime(clockid_t edi, struct timespec *rsi).
func (c *code) clockGettime() {
	c.label("__vdso_clock_gettime")
	c.emit(0x89, 0xff)             // mov edi, edi: clears the upper half of rdi
	c.emit(0x83, 0xff, Clocks-1)   // cmp edi, 15
	c.ifAbove("call")              // unsigned, so also for negative numbers
	c.to("data", 0x4c, 0x8d, 0x05) // lea r8, [rip+data]
	c.label("again")
	c.emit(0x45, 0x8b, 0x48, atSequence) // mov r9d, [r8+sequence]
	c.emit(0x41, 0xf6, 0xc1, 1)          // test r9b, 1
	c.ifNot("update")
	c.emit(0x41, 0x8b, 0x40, atClocks) // mov eax, [r8+clocks]
	c.emit(0x0f, 0xa3, 0xf8)           // bt eax, edi
	c.ifNoCarry("call")
	c.emit(0x41, 0x83, 0x78, atCounter, 0) // cmp dword [r8+counter], 0
	c.ifZero("call")
	c.emit(0x0f, 0xae, 0xe8)          // lfence: the counter must not be read before the sequence number
	c.emit(0x0f, 0x31)                // rdtsc
	c.emit(0x48, 0xc1, 0xe2, 32)      // shl rdx, 32
	c.emit(0x48, 0x09, 0xd0)          // or rax, rdx
	c.emit(0x49, 0x2b, 0x40, atStart) // sub rax, [r8+start]
	c.ifNoCarry("later")
	c.emit(0x31, 0xc0) // xor eax, eax: this CPU's counter is behind the start value; use 0, so that time does not go back
	c.label("later")
	c.emit(0x49, 0xf7, 0x60, atMult)         // mul qword [r8+mult]
	c.emit(0x41, 0x8b, 0x48, atShift)        // mov ecx, [r8+shift]
	c.emit(0x48, 0x0f, 0xad, 0xd0)           // shrd rax, rdx, cl
	c.emit(0x49, 0x03, 0x40, atBase)         // add rax, [r8+base]
	c.emit(0x49, 0x03, 0x44, 0xf8, atOffset) // add rax, [r8+rdi*8+offset]
	c.emit(0x45, 0x3b, 0x48, atSequence)     // cmp r9d, [r8+sequence]
	c.ifNot("again")
	c.emit(0x31, 0xd2)                   // xor edx, edx
	c.emit(0xb9, 0x00, 0xca, 0x9a, 0x3b) // mov ecx, 1000000000
	c.emit(0x48, 0xf7, 0xf1)             // div rcx
	c.emit(0x48, 0x89, 0x06)             // mov [rsi], rax
	c.emit(0x8d, 0x4f, 0xfb)             // lea ecx, [rdi-5]
	c.emit(0x83, 0xf9, 1)                // cmp ecx, 1: CLOCK_REALTIME_COARSE is 5, CLOCK_MONOTONIC_COARSE is 6
	c.ifAbove("fine")
	c.emit(0x89, 0xd0)                   // mov eax, edx
	c.emit(0x41, 0x89, 0xd1)             // mov r9d, edx
	c.emit(0x31, 0xd2)                   // xor edx, edx
	c.emit(0xb9, 0x00, 0x09, 0x3d, 0x00) // mov ecx, 4000000: linux.Tick, a divisor of a second
	c.emit(0xf7, 0xf1)                   // div ecx
	c.emit(0x41, 0x29, 0xd1)             // sub r9d, edx
	c.emit(0x44, 0x89, 0xca)             // mov edx, r9d
	c.label("fine")
	c.emit(0x48, 0x89, 0x56, 8) // mov [rsi+8], rdx
	c.emit(0x31, 0xc0, 0xc3)    // xor eax, eax; ret
	c.label("update")
	c.emit(0xf3, 0x90) // pause
	c.jump("again")
	c.label("call")
	c.system(sysClockGettime)
}

// realtime emits a call of clock_gettime for CLOCK_REALTIME. After the call, rax contains the seconds and rdx the
// nanoseconds. rdi is preserved.
func (c *code) realtime() {
	c.emit(0x57)                 // push rdi
	c.emit(0x48, 0x83, 0xec, 16) // sub rsp, 16
	c.emit(0x48, 0x89, 0xe6)     // mov rsi, rsp
	c.emit(0x31, 0xff)           // xor edi, edi
	c.call("__vdso_clock_gettime")
	c.emit(0x58, 0x5a, 0x5f) // pop rax; pop rdx; pop rdi
}

// gettimeofday is int __vdso_gettimeofday(struct timeval *rdi, struct timezone *rsi).
func (c *code) gettimeofday() {
	c.label("__vdso_gettimeofday")
	c.emit(0x48, 0x85, 0xf6) // test rsi, rsi
	c.ifNot("zone")
	c.emit(0x48, 0x85, 0xff) // test rdi, rdi
	c.ifZero("zone")
	c.realtime()
	c.emit(0x48, 0x89, 0x07)       // mov [rdi], rax
	c.emit(0x89, 0xd0)             // mov eax, edx
	c.emit(0x31, 0xd2)             // xor edx, edx
	c.emit(0xb9, 0xe8, 0x03, 0, 0) // mov ecx, 1000
	c.emit(0xf7, 0xf1)             // div ecx
	c.emit(0x48, 0x89, 0x47, 8)    // mov [rdi+8], rax
	c.emit(0x31, 0xc0, 0xc3)       // xor eax, eax; ret
	c.label("zone")
	c.system(sysGettimeofday)
}

// time is time_t __vdso_time(time_t *rdi).
func (c *code) time() {
	c.label("__vdso_time")
	c.realtime()
	c.emit(0x48, 0x85, 0xff) // test rdi, rdi
	c.ifZero("no place")
	c.emit(0x48, 0x89, 0x07) // mov [rdi], rax
	c.label("no place")
	c.emit(0xc3) // ret
}

// getCPU is int __vdso_getcpu(unsigned *rdi, unsigned *rsi).
func (c *code) getCPU() {
	c.label("__vdso_getcpu")
	c.to("data", 0x4c, 0x8d, 0x05)     // lea r8, [rip+data]
	c.emit(0x41, 0x83, 0x78, atCPU, 0) // cmp dword [r8+cpu], 0
	c.ifZero("no number")
	c.emit(0x0f, 0x01, 0xf9)       // rdtscp: ecx is IA32_TSC_AUX
	c.emit(0x89, 0xc8)             // mov eax, ecx
	c.emit(0x25, 0xff, 0x0f, 0, 0) // and eax, 0xfff
	c.emit(0xc1, 0xe9, 12)         // shr ecx, 12
	c.emit(0x48, 0x85, 0xff)       // test rdi, rdi
	c.ifZero("no CPU")
	c.emit(0x89, 0x07) // mov [rdi], eax
	c.label("no CPU")
	c.emit(0x48, 0x85, 0xf6) // test rsi, rsi
	c.ifZero("no node")
	c.emit(0x89, 0x0e) // mov [rsi], ecx
	c.label("no node")
	c.emit(0x31, 0xc0, 0xc3) // xor eax, eax; ret
	c.label("no number")
	c.system(sysGetCPU)
}
