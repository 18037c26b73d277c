package kernel

import (
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/space"
)

// random is 64 bits that nobody can know before: the CPU's, where it has a source
// of its own; else, what the last bits of its counter give in many readings.
func random() uint64 {
	const tries, rounds = 10, 64 // 10: SDM volume 1, 7.3.17.1
	if have.Random {
		for range tries {
			if v, ok := amd64.Random(); ok {
				return v
			}
		}
	}
	v := entropy
	for range rounds {
		v = mix(v ^ amd64.Timestamp())
	}
	entropy = v
	return mix(v + 0x9e3779b97f4a7c15)
}

// entropy is what random has gathered.
var entropy uint64

// mix is the finaliser of SplitMix64 (Steele, Lea and Flood, OOPSLA 2014).
func mix(v uint64) uint64 {
	v = (v ^ v>>30) * 0xbf58476d1ce4e5b9
	v = (v ^ v>>27) * 0x94d049bb133111eb
	return v ^ v>>31
}

// getRandom is getrandom(2).
func getRandom(addr, size uint64) int64 {
	const most = 4096 // other threads want to run too
	size = min(size, most)
	if !touch(addr, size, space.Write) {
		return -int64(syscall.EFAULT)
	}
	for b := bytesAt(addr, int(size)); len(b) > 0; {
		v := random()
		for i := range min(len(b), 8) {
			b[i] = byte(v >> (8 * i))
		}
		b = b[min(len(b), 8):]
	}
	return int64(size)
}
