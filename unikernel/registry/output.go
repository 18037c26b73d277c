package registry

import (
	"fmt"
	"os"
	"slices"
	"strconv"
	"strings"
)

// PartSize is the size in bytes at which a part of the output is complete. The newest two parts are kept, so at least the
// last PartSize bytes of a guest's output can be read, and at most twice as many are stored.
const PartSize = 4 << 20

// outputPrefix is the prefix of the names of parts, which end with their number.
const outputPrefix = "output."

// Output stores the output of a detached guest. It is used by one goroutine.
type Output struct {
	dir  *os.Root
	max  int64
	part int      // number of the current part
	file *os.File // the current part; nil: it could not be opened
	size int64    // bytes in the current part
	lost int64    // bytes that could not be written since the last successful write
}

// Output returns the store for the output of the entry's guest. The caller closes it before the end of the entry.
func (e *Entry) Output() *Output { return &Output{dir: e.dir, max: PartSize} }

// Write stores output. It never fails, because the guest would wait for ever. If a part cannot be written, for example because the
// file system is full, its bytes are lost. The next part that can be written begins with a line that says how many.
func (o *Output) Write(b []byte) (int, error) {
	if !o.store(b) {
		o.lost += int64(len(b))
	}
	return len(b), nil
}

// store writes to the current part, or to the next one if that is full. It reports whether the bytes are stored.
func (o *Output) store(b []byte) bool {
	if (o.file == nil || o.size >= o.max) && !o.next() {
		return false
	}
	if o.lost > 0 {
		b = append(fmt.Appendf(nil, "\nloam: %d bytes of output were lost, because they could not be stored\n", o.lost), b...)
	}
	n, err := o.file.WriteAt(b, o.size)
	if err != nil {
		o.file.Truncate(o.size) // if this fails, too, the next write covers the bytes
		return false
	}
	o.size += int64(n)
	o.lost = 0
	return true
}

// next opens the next part, and removes all parts but the one before it. It reports whether there is a next part.
func (o *Output) next() bool {
	f, err := o.dir.OpenFile(partName(o.part+1), os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return false
	}
	o.Close()
	o.part++
	o.file, o.size = f, 0
	if o.part > 2 {
		o.dir.Remove(partName(o.part - 2))
	}
	return true
}

// Close closes the current part.
func (o *Output) Close() error {
	if o.file == nil {
		return nil
	}
	return o.file.Close()
}

// partName returns the name of a part.
func partName(n int) string { return outputPrefix + strconv.Itoa(n) }

// parts returns the numbers of the parts in a folder, in order.
func parts(dir *os.Root) (numbers []int, err error) {
	f, err := dir.Open(".")
	if err != nil {
		return nil, err
	}
	defer f.Close()
	names, err := f.Readdirnames(-1)
	for _, name := range names {
		if text, ok := strings.CutPrefix(name, outputPrefix); ok {
			if n, err := strconv.Atoi(text); err == nil && n > 0 {
				numbers = append(numbers, n)
			}
		}
	}
	slices.Sort(numbers)
	return numbers, err
}
