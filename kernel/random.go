package kernel

import (
	"encoding/binary"
	"math/rand/v2"

	"loam/abi/linux"
	"loam/arch/amd64"
	"loam/kernel/space"
)

// Random numbers, for getrandom(2) and for the auxiliary vector (AT_RANDOM). The generator is ChaCha8. After each
// request its key is replaced by some of its own output, so an attacker who obtains the key learns nothing about
// earlier output. New entropy is combined with the key by exclusive or, so even bits that an attacker chooses do
// not weaken it. See decision 19 in docs/decisions.

// generator is the generator of random numbers.
type generator struct {
	rand.ChaCha8
	stirred int64 // time at which the processor's source of random numbers was last read
}

// Seeded reports whether the machine's random numbers are unpredictable.
func Seeded() bool {
	k := &machineCore
	return k.seeded.Load()
}

// startRandom seeds the generator with the time stamp counter, the wall clock, and the processor's source of random
// numbers if there is one. The clocks only make boots differ.
func (k *core) startRandom() {
	k.stir([4]uint64{amd64.Timestamp(), uint64(k.clock.Wall)})
	k.stirOwn()
}

// stir mixes bits into the generator's key.
func (k *core) stir(bits [4]uint64) {
	var key [32]byte
	for i, v := range bits {
		binary.LittleEndian.PutUint64(key[8*i:], v^k.random.Uint64())
	}
	k.random.Seed(key)
}

// stirOwn mixes numbers from the processor's own source (RDRAND) into the generator's key, if the processor has
// one. Some processors return the same number for ever after a suspend; such numbers are ignored.
func (k *core) stirOwn() {
	k.random.stirred = k.clock.now()
	if !k.have.Random {
		return
	}
	var bits [4]uint64
	for i := range bits {
		v, ok := amd64.Random()
		for tries := 1; !ok && tries < 10; tries++ { // ten tries, as recommended by SDM volume 1, 7.3.17.1
			v, ok = amd64.Random()
		}
		if !ok {
			return
		}
		bits[i] = v
	}
	if bits != [4]uint64{bits[0], bits[0], bits[0], bits[0]} {
		k.stir(bits)
		k.seeded.Store(true)
	}
}

// stirInterval is the longest time between two uses of the processor's source, in nanoseconds; Linux has the same
// limit.
const stirInterval = 60e9

// getRandom implements getrandom(2). It never blocks: without unpredictable bits it returns EAGAIN, and package crypto/rand
// then ends the program. It returns at most 4096 bytes.
func (k *core) getRandom(addr, size uint64) int64 {
	const most = 4096 // limits the time during which interrupts are disabled
	size = min(size, most)
	if !k.touch(addr, size, space.Write) {
		return -int64(linux.EFAULT)
	}
	if k.clock.now()-k.random.stirred > stirInterval {
		k.stirOwn()
	}
	if !k.seeded.Load() {
		k.say("loam: the machine has no random numbers: give it a processor with RDRAND (QEMU: -cpu max) or a device (-device virtio-rng-pci)\n")
		return -int64(linux.EAGAIN)
	}
	k.random.Read(bytesAt(addr, int(size)))
	k.stir([4]uint64{}) // the key is replaced, so that the output just returned cannot be computed again
	return int64(size)
}
