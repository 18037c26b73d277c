package kernel

import (
	"loam/arch/amd64"
	"loam/boot"
	"loam/kernel/space"
	"loam/kernel/thread"
)

// The program's first stack has the layout of Linux (System V ABI for AMD64, 3.4.1), from below: the number of
// arguments; their addresses, then 0; the addresses of the environment strings, then 0; the auxiliary vector, pairs
// of a number and a value that end with a pair of zeros; and the strings and bytes that these point to.

// stackSize is the size of the first thread's stack. The runtime uses the upper 64 KiB for its own stack, g0
// (rt0_go).
const stackSize = 256 << 10

// stackGap is the size of the unmapped range below the stack in bytes, which catches an overflow. Linux leaves a gap of the
// same size.
const stackGap = 1 << 20

// Types of entries of the auxiliary vector (getauxval(3)).
const (
	auxNull     = 0
	auxPageSize = 6
	auxSecure   = 23
	auxRandom   = 25
)

// badConfig is the Problem of a machine whose boot module is not a valid boot.Config.
const badConfig boot.Problem = "the program's arguments and environment are too long, or not what the loam command writes"

// loadProgram creates the first thread of the program and its stack.
func (k *core) loadProgram(c *cpu) {
	config := bytesAt(uint64(k.window)+k.machine.Module.Start, int(k.machine.Module.Size()))
	if len(config) == 0 {
		config, _ = boot.Archive(Files(), boot.ConfigArchive)
	}
	if len(config) == 0 {
		config = textBytes(boot.DefaultConfig)
	}
	args, env, text := countWords(config)
	words := uint64(1 + args + 1 + env + 1 + 2*4)
	strings := uint64(text+16+15) &^ 15
	need := (words*8+strings)&^15 + 16

	size := stackSize + pages(need)
	low, ok := k.dynamic.Reserve(0, stackGap+size, amd64.PageSize, 0)
	low += stackGap
	top := low + size
	if !ok || !k.dynamic.Set(low, top, space.Read|space.Write) || !k.touch(low, size, space.Write) {
		k.must(badConfig)
	}
	w := stackWriter{at: top - need, text: top - strings}
	sp := w.at

	w.word(uint64(args))
	w.list(config, boot.WordArg)
	w.list(config, boot.WordEnv)
	seed := [2]uint64{k.random.Uint64(), k.random.Uint64()}
	w.word(auxPageSize)
	w.word(amd64.PageSize)
	w.word(auxSecure)
	w.word(0)
	w.word(auxRandom)
	w.text = (w.text + 15) &^ 15
	w.word(w.text)
	*word(w.text), *word(w.text + 8) = seed[0], seed[1]
	w.word(auxNull)
	w.word(0)

	id, ok := k.newThread()
	if !ok {
		k.must(noMemory)
	}
	f := frameOf(k.threads.At(id).Page)
	*f = amd64.Frame{
		Vector: amd64.VectorCall,
		IP:     uint64(entries.Program), SP: sp,
		CS: amd64.CodeSelector, SS: amd64.DataSelector,
		Flags: amd64.FlagFixed | amd64.FlagInterrupt,
	}
	k.threads.At(id).Pending, k.earlySignals = k.earlySignals, 0
	nameProgram(k.threads.At(id), config)
	c.current = id
}

// nameProgram gives the first thread the name of the program, as execve(2) does: the last part of the first argument.
func nameProgram(th *thread.Thread, config []byte) {
	for {
		kind, text, rest, ok := boot.NextWord(config)
		if !ok {
			return
		}
		if kind == boot.WordArg {
			last := 0
			for i, b := range text {
				if b == '/' {
					last = i + 1
				}
			}
			copy(th.Name[:len(th.Name)-1], text[last:])
			return
		}
		config = rest
	}
}

// countWords returns the number of arguments and environment strings in a configuration, and their size in bytes.
func countWords(config []byte) (args, env, size int) {
	for {
		kind, text, rest, ok := boot.NextWord(config)
		if !ok {
			return args, env, size
		}
		switch kind {
		case boot.WordArg:
			args++
			size += len(text)
		case boot.WordEnv:
			env++
			size += len(text)
		}
		config = rest
	}
}

// pages rounds a size up to whole pages.
func pages(size uint64) uint64 { return (size + amd64.PageSize - 1) &^ (amd64.PageSize - 1) }

// stackWriter fills a stack from low to high addresses. It writes words at address at and strings at address text, and
// advances both.
type stackWriter struct{ at, text uint64 }

func (w *stackWriter) word(v uint64) {
	*word(w.at) = v
	w.at += 8
}

// list writes the strings of one kind (arguments, or environment) to the stack, and the list of their
// addresses, which ends with a 0.
func (w *stackWriter) list(config []byte, want byte) {
	for {
		kind, text, rest, ok := boot.NextWord(config)
		if !ok {
			break
		}
		if kind == want {
			w.word(w.text)
			w.text += uint64(copy(bytesAt(w.text, len(text)), text))
		}
		config = rest
	}
	w.word(0)
}
