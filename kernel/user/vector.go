package user

import "encoding/binary"

// Offsets in the standard format of XSAVE in bytes (SDM volume 1, 13.4).
const (
	vectorControl = 0   // control word of the x87, 2 bytes
	vectorMXCSR   = 24  // control and status of SSE, 4 bytes
	vectorXMM     = 160 // registers XMM0 to XMM15, 16 bytes each
	vectorHeader  = 512 // header, 64 bytes; the first 8 are the bit set of components not in their initial state
	vectorUpper   = 576 // upper halves of the AVX registers (the same offset on all processors: CPUID 0DH.2)

	componentSSE = 1 << 1
	componentAVX = 1 << 2

	initialControl = 0x37f
	initialMXCSR   = 0x1f80
	maskMXCSR      = 0xffff // bits of MXCSR that exist on all processors with XSAVE (SDM volume 1, 10.2.3)
)

// initVectors writes the initial state, as after execve(2), into zeroed memory.
func initVectors(b []byte) {
	binary.LittleEndian.PutUint16(b[vectorControl:], initialControl)
	binary.LittleEndian.PutUint32(b[vectorMXCSR:], initialMXCSR)
}

// cleanVectors clears state that makes XRSTOR fault (SDM volume 1, 13.8.1): unknown components, the compacted format,
// reserved bits. components are the components enabled in XCR0.
func cleanVectors(b []byte, components uint64) {
	le := binary.LittleEndian
	header := b[vectorHeader : vectorHeader+64]
	present := le.Uint64(header) & components
	clear(header)
	le.PutUint64(header, present)
	le.PutUint32(b[vectorMXCSR:], le.Uint32(b[vectorMXCSR:])&maskMXCSR)
}

// joinVectors stores SSE and AVX registers that were saved by move instructions at their offsets in XSAVE's format.
func joinVectors(b []byte, wide *[16]wideRegister, mxcsr uint32) {
	le := binary.LittleEndian
	present := le.Uint64(b[vectorHeader:]) | componentSSE
	low, high := halves(b)
	if high != nil {
		present |= componentAVX
		for i := range wide {
			w := &wide[i]
			low[i], high[i] = w.low, w.high
		}
	} else {
		for i := range low {
			low[i] = wide[i].low
		}
	}
	le.PutUint64(b[vectorHeader:], present)
	le.PutUint32(b[vectorMXCSR:], mxcsr)
}

// splitVectors is the reverse of joinVectors: it copies registers from XSAVE's format to the memory from which move instructions load them.
// A component that is not marked as present has its initial value, zero.
func splitVectors(b []byte, wide *[16]wideRegister) (mxcsr uint32) {
	le := binary.LittleEndian
	present := le.Uint64(b[vectorHeader:])
	low, high := halves(b)
	if present&(componentSSE|componentAVX) == componentSSE|componentAVX && high != nil {
		for i := range wide {
			w := &wide[i]
			w.low, w.high = low[i], high[i]
		}
		return le.Uint32(b[vectorMXCSR:])
	}
	clear(wide[:])
	if present&componentSSE != 0 {
		for i := range low {
			wide[i].low = low[i]
		}
	}
	if present&componentAVX != 0 && high != nil {
		for i := range high {
			wide[i].high = high[i]
		}
	}
	return le.Uint32(b[vectorMXCSR:])
}

// half is an SSE register, or the upper half of an AVX register.
type half [2]uint64

// halves returns the lower and the upper halves of the registers in XSAVE's format; upper is nil without AVX.
func halves(b []byte) (lower, upper *[16]half) {
	const size = 16 * 16
	lower = halvesAt(b[vectorXMM : vectorXMM+size])
	if len(b) > vectorUpper {
		upper = halvesAt(b[vectorUpper : vectorUpper+size])
	}
	return lower, upper
}
