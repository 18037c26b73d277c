package exec

import (
	"encoding/binary"

	"loam/abi/linux"
	"loam/mem"
)

// Limits of arguments and environment (execve(2)).
const (
	maxString   = 128 << 10       // MAX_ARG_STRLEN: bytes of one string, with its zero byte
	leastRoom   = 128 << 10       // ARG_MAX: bytes that are allowed for any stack limit
	mostRoom    = 8 << 20 / 4 * 3 // bytes; three quarters of the default stack limit of 8 MiB
	pointerSize = 8
)

// Types of auxv entries (getauxval(3)), in Linux's order on x86-64.
const (
	atNull         = 0
	atPhdr         = 3
	atPhent        = 4
	atPhnum        = 5
	atPageSize     = 6
	atBase         = 7
	atFlags        = 8
	atEntry        = 9
	atUID          = 11
	atEUID         = 12
	atGID          = 13
	atEGID         = 14
	atPlatform     = 15
	atHWCap        = 16
	atClockTick    = 17
	atSecure       = 23
	atRandom       = 25
	atHWCap2       = 26
	atRseqSize     = 27
	atRseqAlign    = 28
	atExecFn       = 31
	atSysinfoEhdr  = 33
	atMinSigStack  = 51
	clockTicks     = 100
	platform       = "x86_64"
	randomBytes    = 16
	stackAlignment = 16
)

// checkStrings rejects arguments and environment that are too long: a string longer than maxString, or a total size,
// with the pointers, of more than a quarter of the stack limit.
func checkStrings(q Request) error {
	room := max(min(uint64(mostRoom), q.StackLimit/4), leastRoom)
	need := uint64(max(len(q.Argv), 1)+len(q.Envp)) * pointerSize
	if need >= room {
		return linux.E2BIG
	}
	for _, all := range [][]string{q.Argv, q.Envp, {q.Path}} {
		for _, s := range all {
			if len(s) >= maxString {
				return linux.E2BIG
			}
			if need += uint64(len(s)) + 1; need > room {
				return linux.E2BIG
			}
		}
	}
	return nil
}

// pusher builds a stack from its top down.
type pusher struct {
	top   uint64
	bytes []byte // the content of the stack, which fills the slice from its end
	used  uint64
}

func (s *pusher) address() uint64 { return s.top - s.used }

// push stores bytes below the current top of the stack and returns their address.
func (s *pusher) push(b []byte) uint64 {
	s.used += uint64(len(b))
	if s.used > uint64(len(s.bytes)) {
		grown := make([]byte, max(2*s.used, 4096))
		copy(grown[len(grown)-len(s.bytes):], s.bytes)
		s.bytes = grown
	}
	copy(s.bytes[uint64(len(s.bytes))-s.used:], b)
	return s.address()
}

// strings pushes strings so that the first has the lowest address, and returns their addresses.
func (s *pusher) strings(all []string) []uint64 {
	at := make([]uint64, len(all))
	for i := len(all) - 1; i >= 0; i-- {
		at[i] = s.push(append([]byte(all[i]), 0))
	}
	return at
}

// align lowers the stack to a multiple of n.
func (s *pusher) align(n uint64) { s.push(make([]byte, s.address()%n)) }

// content returns the content of the stack, from its lowest address upwards.
func (s *pusher) content() []byte { return s.bytes[uint64(len(s.bytes))-s.used:] }

// stack builds the initial stack and plans its region. From the top down, it contains a zero word, the path, the
// environment, the arguments, a gap of a random size up to 8 KiB, the platform's name, random bytes, the auxiliary
// vector, the two lists of pointers (environment, arguments), and the number of arguments at the lowest address.
func (p *Plan) stack(q Request, main *Image, vdso uint64) error {
	top := mem.End - q.below(stackShift)
	s := &pusher{top: top}
	s.push(make([]byte, pointerSize))
	path := s.strings([]string{q.Path})[0]
	p.Places.EnvEnd = s.address()
	envp := s.strings(q.Envp)
	p.Places.EnvStart, p.Places.ArgEnd = s.address(), s.address()
	argv := s.strings(q.Argv)
	p.Places.ArgStart = s.address()
	if q.Randomise {
		s.push(make([]byte, q.Random()%8192))
	}
	s.align(stackAlignment)
	name := s.strings([]string{platform})[0]
	random := s.push(q.seed())
	words := []uint64{uint64(len(argv))}
	words = append(append(words, argv...), 0)
	words = append(append(words, envp...), 0)
	auxv := p.auxv(q, main, vdso, path, name, random)
	words = append(words, auxv...)
	// The list of pointers must begin at a multiple of 16. Zero bytes fill the gap between the list and the random bytes.
	s.push(make([]byte, (s.address()-uint64(len(words))*pointerSize)%stackAlignment))
	b := make([]byte, 0, len(words)*pointerSize)
	for _, w := range words {
		b = binary.LittleEndian.AppendUint64(b, w)
	}
	p.Places.Auxv = b[len(b)-len(auxv)*pointerSize:]
	p.StackPointer = s.push(b)
	p.Places.StackStart = p.StackPointer
	p.Stack = s.content()
	return p.stackRegion(q, main, top)
}

// stackRegion plans the region of the stack. It has stackSlack bytes below the stack pointer, and grows on demand.
func (p *Plan) stackRegion(q Request, main *Image, top uint64) error {
	low := p.StackPointer &^ (mem.PageSize - 1)
	size := min(top-low+stackSlack, max(q.StackLimit&^(mem.PageSize-1), top-low))
	prot := mem.Read | mem.Write
	if main.StackExec {
		prot |= mem.Exec
	}
	for _, m := range p.Mappings {
		if m.Request.Addr+m.Request.Length > top-size {
			return linux.ENOMEM
		}
	}
	p.add(mem.Request{
		Addr: top - size, Length: size, Prot: prot,
		Flags: mem.MapPrivate | mem.MapFixedNoReplace | mem.MapGrowsDown,
	})
	return nil
}

// seed returns the random bytes to which AT_RANDOM points.
func (q *Request) seed() []byte {
	var b []byte
	for range randomBytes / 8 {
		b = binary.LittleEndian.AppendUint64(b, q.Random())
	}
	return b
}

// auxv returns the auxiliary vector in Linux's order, including the final AT_NULL entry.
func (p *Plan) auxv(q Request, main *Image, vdso, path, name, random uint64) []uint64 {
	secure := uint64(0)
	if q.Identity.Secure {
		secure = 1
	}
	var v []uint64
	if vdso != 0 {
		v = append(v, atSysinfoEhdr, vdso)
	}
	return append(v,
		atMinSigStack, q.Machine.MinSignalStack,
		atHWCap, q.Machine.HWCap,
		atPageSize, mem.PageSize,
		atClockTick, clockTicks,
		atPhdr, main.Headers+p.Bias,
		atPhent, programSize,
		atPhnum, uint64(main.HeaderNum),
		atBase, p.Base,
		atFlags, 0,
		atEntry, main.Entry+p.Bias,
		atUID, uint64(q.Identity.UID),
		atEUID, uint64(q.Identity.EUID),
		atGID, uint64(q.Identity.GID),
		atEGID, uint64(q.Identity.EGID),
		atSecure, secure,
		atRandom, random,
		atHWCap2, q.Machine.HWCap2,
		atExecFn, path,
		atPlatform, name,
		atRseqSize, q.Machine.RseqSize,
		atRseqAlign, q.Machine.RseqAlign,
		atNull, 0,
	)
}
