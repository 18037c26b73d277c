package vdso

import "loam/internal/machinecode"

// code is machine code with labels.
type code struct{ machinecode.Code }

// Jumps with 32-bit displacements.
func (c *code) jump(label string)      { c.To(label, 0xe9) }
func (c *code) call(label string)      { c.To(label, 0xe8) }
func (c *code) ifZero(label string)    { c.To(label, 0x0f, 0x84) }
func (c *code) ifNot(label string)     { c.To(label, 0x0f, 0x85) }
func (c *code) ifAbove(label string)   { c.To(label, 0x0f, 0x87) }
func (c *code) ifNoCarry(label string) { c.To(label, 0x0f, 0x83) }

// Numbers of the system calls that the functions make if they cannot read a clock themselves.
const (
	sysGettimeofday = 96
	sysClockGettime = 228
	sysGetCPU       = 309
)

// system emits a system call, which gets the function's arguments unchanged, and a return instruction.
func (c *code) system(number uint16) {
	c.Emit(0xb8, byte(number), byte(number>>8), 0, 0) // mov eax, number
	c.Emit(0x0f, 0x05)                                // syscall
	c.Emit(0xc3)                                      // ret
}

// functions returns the code of all functions of the vDSO. Each function's name is a label.
func functions() *code {
	c := &code{}
	c.clockGettime()
	c.gettimeofday()
	c.time()
	c.getCPU()
	return c
}

// clockGettime is int __vdso_clock_gettime(clockid_t edi, struct timespec *rsi).
func (c *code) clockGettime() {
	c.Label("__vdso_clock_gettime")
	c.Emit(0x89, 0xff)             // mov edi, edi: clears the upper half of rdi
	c.Emit(0x83, 0xff, Clocks-1)   // cmp edi, 15
	c.ifAbove("call")              // unsigned, so also for negative numbers
	c.To("data", 0x4c, 0x8d, 0x05) // lea r8, [rip+data]
	c.Label("again")
	c.Emit(0x45, 0x8b, 0x48, atSequence) // mov r9d, [r8+sequence]
	c.Emit(0x41, 0xf6, 0xc1, 1)          // test r9b, 1
	c.ifNot("update")
	c.Emit(0x41, 0x8b, 0x40, atClocks) // mov eax, [r8+clocks]
	c.Emit(0x0f, 0xa3, 0xf8)           // bt eax, edi
	c.ifNoCarry("call")
	c.Emit(0x41, 0x83, 0x78, atCounter, 0) // cmp dword [r8+counter], 0
	c.ifZero("call")
	c.Emit(0x0f, 0xae, 0xe8)          // lfence: the counter must not be read before the sequence number
	c.Emit(0x0f, 0x31)                // rdtsc
	c.Emit(0x48, 0xc1, 0xe2, 32)      // shl rdx, 32
	c.Emit(0x48, 0x09, 0xd0)          // or rax, rdx
	c.Emit(0x49, 0x2b, 0x40, atStart) // sub rax, [r8+start]
	c.ifNoCarry("later")
	c.Emit(0x31, 0xc0) // xor eax, eax: this CPU's counter is behind the start value; use 0, so that time does not go back
	c.Label("later")
	c.Emit(0x49, 0xf7, 0x60, atMult)         // mul qword [r8+mult]
	c.Emit(0x41, 0x8b, 0x48, atShift)        // mov ecx, [r8+shift]
	c.Emit(0x48, 0x0f, 0xad, 0xd0)           // shrd rax, rdx, cl
	c.Emit(0x49, 0x03, 0x40, atBase)         // add rax, [r8+base]
	c.Emit(0x49, 0x03, 0x44, 0xf8, atOffset) // add rax, [r8+rdi*8+offset]
	c.Emit(0x45, 0x3b, 0x48, atSequence)     // cmp r9d, [r8+sequence]
	c.ifNot("again")
	c.Emit(0x31, 0xd2)                   // xor edx, edx
	c.Emit(0xb9, 0x00, 0xca, 0x9a, 0x3b) // mov ecx, 1000000000
	c.Emit(0x48, 0xf7, 0xf1)             // div rcx
	c.Emit(0x48, 0x89, 0x06)             // mov [rsi], rax
	c.Emit(0x8d, 0x4f, 0xfb)             // lea ecx, [rdi-5]
	c.Emit(0x83, 0xf9, 1)                // cmp ecx, 1: CLOCK_REALTIME_COARSE is 5, CLOCK_MONOTONIC_COARSE is 6
	c.ifAbove("fine")
	c.Emit(0x89, 0xd0)                   // mov eax, edx
	c.Emit(0x41, 0x89, 0xd1)             // mov r9d, edx
	c.Emit(0x31, 0xd2)                   // xor edx, edx
	c.Emit(0xb9, 0x00, 0x09, 0x3d, 0x00) // mov ecx, 4000000: linux.Tick, a divisor of a second
	c.Emit(0xf7, 0xf1)                   // div ecx
	c.Emit(0x41, 0x29, 0xd1)             // sub r9d, edx
	c.Emit(0x44, 0x89, 0xca)             // mov edx, r9d
	c.Label("fine")
	c.Emit(0x48, 0x89, 0x56, 8) // mov [rsi+8], rdx
	c.Emit(0x31, 0xc0, 0xc3)    // xor eax, eax; ret
	c.Label("update")
	c.Emit(0xf3, 0x90) // pause
	c.jump("again")
	c.Label("call")
	c.system(sysClockGettime)
}

// realtime emits a call of clock_gettime for CLOCK_REALTIME. After the call, rax contains the seconds and rdx the
// nanoseconds. rdi is preserved.
func (c *code) realtime() {
	c.Emit(0x57)                 // push rdi
	c.Emit(0x48, 0x83, 0xec, 16) // sub rsp, 16
	c.Emit(0x48, 0x89, 0xe6)     // mov rsi, rsp
	c.Emit(0x31, 0xff)           // xor edi, edi
	c.call("__vdso_clock_gettime")
	c.Emit(0x58, 0x5a, 0x5f) // pop rax; pop rdx; pop rdi
}

// gettimeofday is int __vdso_gettimeofday(struct timeval *rdi, struct timezone *rsi).
func (c *code) gettimeofday() {
	c.Label("__vdso_gettimeofday")
	c.Emit(0x48, 0x85, 0xf6) // test rsi, rsi
	c.ifNot("zone")
	c.Emit(0x48, 0x85, 0xff) // test rdi, rdi
	c.ifZero("zone")
	c.realtime()
	c.Emit(0x48, 0x89, 0x07)       // mov [rdi], rax
	c.Emit(0x89, 0xd0)             // mov eax, edx
	c.Emit(0x31, 0xd2)             // xor edx, edx
	c.Emit(0xb9, 0xe8, 0x03, 0, 0) // mov ecx, 1000
	c.Emit(0xf7, 0xf1)             // div ecx
	c.Emit(0x48, 0x89, 0x47, 8)    // mov [rdi+8], rax
	c.Emit(0x31, 0xc0, 0xc3)       // xor eax, eax; ret
	c.Label("zone")
	c.system(sysGettimeofday)
}

// time is time_t __vdso_time(time_t *rdi).
func (c *code) time() {
	c.Label("__vdso_time")
	c.realtime()
	c.Emit(0x48, 0x85, 0xff) // test rdi, rdi
	c.ifZero("no place")
	c.Emit(0x48, 0x89, 0x07) // mov [rdi], rax
	c.Label("no place")
	c.Emit(0xc3) // ret
}

// getCPU is int __vdso_getcpu(unsigned *rdi, unsigned *rsi).
func (c *code) getCPU() {
	c.Label("__vdso_getcpu")
	c.To("data", 0x4c, 0x8d, 0x05)     // lea r8, [rip+data]
	c.Emit(0x41, 0x83, 0x78, atCPU, 0) // cmp dword [r8+cpu], 0
	c.ifZero("no number")
	c.Emit(0x0f, 0x01, 0xf9)       // rdtscp: ecx is IA32_TSC_AUX
	c.Emit(0x89, 0xc8)             // mov eax, ecx
	c.Emit(0x25, 0xff, 0x0f, 0, 0) // and eax, 0xfff
	c.Emit(0xc1, 0xe9, 12)         // shr ecx, 12
	c.Emit(0x48, 0x85, 0xff)       // test rdi, rdi
	c.ifZero("no CPU")
	c.Emit(0x89, 0x07) // mov [rdi], eax
	c.Label("no CPU")
	c.Emit(0x48, 0x85, 0xf6) // test rsi, rsi
	c.ifZero("no node")
	c.Emit(0x89, 0x0e) // mov [rsi], ecx
	c.Label("no node")
	c.Emit(0x31, 0xc0, 0xc3) // xor eax, eax; ret
	c.Label("no number")
	c.system(sysGetCPU)
}
