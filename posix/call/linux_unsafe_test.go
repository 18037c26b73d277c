package call

import (
	"syscall"
	"testing"
	"unsafe"

	"loam/abi/linux"
)

// Sequences of calls that are made on Linux and on Loam, whose results must be equal: the value or the errno of each call, and
// the bytes that it leaves in memory. So the judge of the decoders is Linux itself.

// Sizes of the memory of a sequence. Texts are above the part that calls write to.
const (
	seqMemory = 64 << 10
	seqOutput = 16 << 10
)

// Bits of arguments that are not numbers: the result of an earlier step, and an address in the memory of the sequence.
const (
	resultOf  = 1 << 48
	addressOf = 1 << 49
	plain     = resultOf - 1 // the number of the step, or the offset
)

// noAddress is an address at which neither system has memory.
const noAddress = 8

// none is a descriptor that is not open.
const none = 9999

// here is AT_FDCWD.
const here = ^uint64(99)

// kind is the kind of a step.
type kind int

const (
	makesCall kind = iota
	opensFile      // a call whose result is a descriptor
	opensPair      // a call that stores two descriptors at an address; they are the results of this and of the next step
	stores         // stores bytes
	pointers       // stores an address
	noOperation
)

// step is a step of a sequence.
type step struct {
	kind   kind
	number int
	args   []uint64
	at     uint64 // offset in memory
	bytes  []byte
	hidden []span // bytes that may differ, and are cleared
	masked []span // bytes that may differ in this and in later steps, but keep their values
	ignore uint64 // bits of the result that may differ, if both calls succeed
}

type span struct{ at, size int }

// sequence is a list of steps.
type sequence struct {
	steps []step
	texts []byte
}

// at returns the address of an offset in the memory.
func at(offset uint64) uint64 { return addressOf | offset }

// text returns the address of a string with a terminating NUL.
func (s *sequence) text(name string) uint64 {
	s.texts = append(s.texts, name...)
	s.texts = append(s.texts, 0)
	return at(seqOutput + uint64(len(s.texts)-len(name)-1))
}

func (s *sequence) add(st step) uint64 {
	s.steps = append(s.steps, st)
	return resultOf | uint64(len(s.steps)-1)
}

// call adds a call. The result stands for its result in later steps.
func (s *sequence) call(number int, args ...uint64) uint64 {
	return s.add(step{number: number, args: args})
}

// open adds a call whose result is a descriptor.
func (s *sequence) open(number int, args ...uint64) uint64 {
	return s.add(step{kind: opensFile, number: number, args: args})
}

// pair adds a call that stores two descriptors at its last address, and returns them.
func (s *sequence) pair(number int, offset uint64, args ...uint64) (first, second uint64) {
	first = s.add(step{kind: opensPair, number: number, args: args, at: offset})
	return first, s.add(step{kind: noOperation})
}

// put stores bytes.
func (s *sequence) put(offset uint64, bytes ...byte) {
	s.add(step{kind: stores, at: offset, bytes: bytes})
}

// word stores 64-bit words. Addresses of the memory are stored as such.
func (s *sequence) word(offset uint64, words ...uint64) {
	for i, w := range words {
		at := offset + uint64(i)*8
		if w&^plain == addressOf || w&^plain == resultOf {
			s.add(step{kind: pointers, at: at, args: []uint64{w}})
		} else {
			s.put(at, le.AppendUint64(nil, w)...)
		}
	}
}

// int32 stores 32-bit words.
func (s *sequence) int32(offset uint64, words ...uint32) {
	for i, w := range words {
		s.put(offset+uint64(i)*4, le.AppendUint32(nil, w)...)
	}
}

// hide makes the comparison ignore bytes that the last call has stored.
func (s *sequence) hide(offset, size int) {
	last := &s.steps[len(s.steps)-1]
	last.hidden = append(last.hidden, span{offset, size})
}

// mask makes the comparison of this and of later steps ignore bytes that the last call has stored. Later calls can use them.
func (s *sequence) mask(offset, size int) {
	last := &s.steps[len(s.steps)-1]
	last.masked = append(last.masked, span{offset, size})
}

// ignore makes the comparison ignore bits of the value that the last call returns.
func (s *sequence) ignore(bits uint64) { s.steps[len(s.steps)-1].ignore = bits }

// outcome is the result of a step.
type outcome struct {
	result uint64
	errno  linux.Errno
	memory []byte
}

// system runs steps: memory at an address, and a function that makes calls.
type system struct {
	memory []byte
	base   uint64
	do     func(number int, args [6]uint64) (uint64, linux.Errno)
}

// run executes the steps.
func (y *system) run(s *sequence) (all []outcome) {
	results := make([]uint64, len(s.steps))
	var addresses []uint64             // offsets of addresses in memory
	descriptors := map[uint64]uint64{} // descriptors in memory, by their offset
	convert := func(a uint64) uint64 {
		switch {
		case a&^plain == addressOf:
			return a&plain + y.base
		case a&^plain == resultOf:
			return results[a&plain]
		}
		return a
	}
	var masked []span
	copy(y.memory[seqOutput:], s.texts)
	for i, st := range s.steps {
		out := outcome{}
		switch st.kind {
		case makesCall, opensFile, opensPair:
			var args [6]uint64
			for n, a := range st.args {
				args[n] = convert(a)
			}
			out.result, out.errno = y.do(st.number, args)
			results[i] = out.result
			if out.errno != 0 || st.kind != makesCall {
				out.result = 0
			}
			if st.kind == opensPair {
				pair := y.memory[st.at:][:8]
				results[i], results[i+1] = uint64(le.Uint32(pair)), uint64(le.Uint32(pair[4:]))
				clear(pair)
			}
		case stores:
			copy(y.memory[st.at:], st.bytes)
		case pointers:
			v := convert(st.args[0])
			le.PutUint64(y.memory[st.at:], v)
			if v >= y.base && v < y.base+seqMemory {
				addresses = append(addresses, st.at)
			} else {
				descriptors[st.at] = v
			}
		}
		for _, h := range st.hidden {
			clear(y.memory[h.at:][:h.size])
		}
		out.memory = append([]byte(nil), y.memory[:seqOutput]...)
		masked = append(masked, st.masked...)
		for _, m := range masked {
			clear(out.memory[m.at:][:m.size])
		}
		for _, offset := range addresses { // addresses differ between the systems
			if v := le.Uint64(y.memory[offset:]); v >= y.base && v < y.base+seqMemory {
				le.PutUint64(out.memory[offset:], v-y.base)
			}
		}
		for offset, fd := range descriptors { // their numbers differ
			if uint64(le.Uint32(y.memory[offset:])) == fd {
				clear(out.memory[offset:][:4])
			}
		}
		all = append(all, out)
	}
	return all
}

// onLinux runs a sequence on the host, in an empty folder.
func onLinux(t *testing.T, s *sequence) []outcome {
	t.Helper()
	t.Setenv("TMPDIR", "/dev/shm") // a file system in memory, like that of Loam
	t.Chdir(t.TempDir())
	const guard = 1 << 20
	memory, err := syscall.Mmap(-1, 0, guard+seqMemory+guard, linux.PROT_NONE, linux.MAP_ANONYMOUS|linux.MAP_PRIVATE|linux.MAP_NORESERVE)
	if err != nil {
		t.Fatal(err)
	}
	defer syscall.Munmap(memory)
	if err := syscall.Mprotect(memory[guard:guard+seqMemory], linux.PROT_READ|linux.PROT_WRITE); err != nil {
		t.Fatal(err)
	}
	y := system{memory: memory[guard:][:seqMemory], base: uint64(uintptr(unsafe.Pointer(&memory[guard])))}
	y.do = func(number int, a [6]uint64) (uint64, linux.Errno) {
		r, _, errno := syscall.Syscall6(uintptr(number), uintptr(a[0]), uintptr(a[1]), uintptr(a[2]), uintptr(a[3]), uintptr(a[4]), uintptr(a[5]))
		return uint64(r), linux.Errno(errno)
	}
	old := syscall.Umask(0o22)
	defer syscall.Umask(old)
	before := openFiles(t)
	defer func() {
		for fd := range openFiles(t) {
			if !before[fd] {
				syscall.Close(fd)
			}
		}
	}()
	return y.run(s)
}
