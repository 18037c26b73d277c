package kernel

import (
	"encoding/binary"
	"math/rand/v2"
	"sync/atomic"
	"syscall"

	"loam/arch/amd64"
	"loam/kernel/space"
)

// Random numbers, for getrandom(2) and for what the runtime finds on its first stack.
// They are ChaCha8's, under a key that is replaced by some of its own output after each
// answer, so that who sees the key learns nothing of the answers before. Whatever is mixed
// in is added to the key bit by bit, and makes it no worse, whoever it comes from. See
// docs/decisions.

// random is the generator, without its lock, which is the kernel's.
var random struct {
	rand.ChaCha8
	stirred int64 // when the processor's own numbers were asked for
}

// seeded is set when something was mixed in that nobody can guess.
var seeded atomic.Bool

// Seeded reports that the machine's random numbers cannot be guessed.
func Seeded() bool { return seeded.Load() }

// startRandom begins with the counter, which makes numbers differ from one boot to the
// next and is worth no more, and with what the processor has.
func startRandom() {
	stir([4]uint64{amd64.Timestamp(), uint64(clock.Wall)})
	stirOwn()
}

// stir mixes in bits.
func stir(bits [4]uint64) {
	var key [32]byte
	for i, v := range bits {
		binary.LittleEndian.PutUint64(key[8*i:], v^random.Uint64())
	}
	random.Seed(key)
}

// stirOwn mixes in numbers of the processor's own source, if it has one. Some give the
// same number for ever after a sleep.
func stirOwn() {
	random.stirred = clock.now()
	if !have.Random {
		return
	}
	var bits [4]uint64
	for i := range bits {
		v, ok := amd64.Random()
		for tries := 1; !ok && tries < 10; tries++ { // SDM volume 1, 7.3.17.1
			v, ok = amd64.Random()
		}
		if !ok {
			return
		}
		bits[i] = v
	}
	if bits != [4]uint64{bits[0], bits[0], bits[0], bits[0]} {
		stir(bits)
		seeded.Store(true)
	}
}

// stirInterval is how long the processor's source is not asked, in nanoseconds: as long
// as Linux waits at most.
const stirInterval = 60e9

// getRandom is getrandom(2). It never waits: the error EAGAIN, by which package
// crypto/rand ends the program, says that nothing is known that nobody can guess.
func getRandom(addr, size uint64) int64 {
	const most = 4096 // other threads want to run too
	size = min(size, most)
	if !touch(addr, size, space.Write) {
		return -int64(syscall.EFAULT)
	}
	if clock.now()-random.stirred > stirInterval {
		stirOwn()
	}
	if !seeded.Load() {
		say("loam: the machine has no random numbers: give it a processor with RDRAND (QEMU: -cpu max) or a device (-device virtio-rng-pci)\n")
		return -int64(syscall.EAGAIN)
	}
	random.Read(bytesAt(addr, int(size)))
	stir([4]uint64{}) // a new key, and nothing is left of the answer
	return int64(size)
}
