package exec

import (
	"bytes"
	"encoding/binary"
	"io"
	"math/rand/v2"
	"testing"
)

// withNotes returns an ELF file whose only segment has notes.
func withNotes(notes []byte) []byte {
	le := binary.LittleEndian
	b := make([]byte, headerSize+programSize)
	copy(b, "\x7fELF\x02\x01")
	le.PutUint16(b[16:], typeDyn)
	le.PutUint64(b[32:], headerSize)
	le.PutUint16(b[56:], 1)
	h := b[headerSize:]
	le.PutUint32(h, ptNote)
	le.PutUint64(h[8:], headerSize+programSize)
	le.PutUint64(h[32:], uint64(len(notes)))
	return append(b, notes...)
}

// note returns a note. name and id have sizes that are multiples of 4.
func note(kind uint32, name, id string) []byte {
	b := binary.LittleEndian.AppendUint32(nil, uint32(len(name)))
	b = binary.LittleEndian.AppendUint32(b, uint32(len(id)))
	b = binary.LittleEndian.AppendUint32(b, kind)
	return append(append(b, name...), id...)
}

func TestBuildID(t *testing.T) {
	const id = "0123456789abcdefghij"
	other := note(1, noteName, "abcd")
	for name, c := range map[string]struct {
		notes []byte
		want  string
	}{
		"only note":      {note(noteBuildID, noteName, id), id},
		"second note":    {append(other, note(noteBuildID, noteName, id[:8])...), id[:8]},
		"no notes":       {nil, ""},
		"other type":     {other, ""},
		"other name":     {note(noteBuildID, "BSD\x00", id), ""},
		"too long":       {note(noteBuildID, noteName, id+"abcd"), ""},
		"empty":          {note(noteBuildID, noteName, ""), ""},
		"truncated note": {note(noteBuildID, noteName, id)[:24], ""},
		"huge sizes":     {append(bytes.Repeat([]byte{0xff}, 8), note(noteBuildID, noteName, id)...), ""},
	} {
		if got := BuildID(bytes.NewReader(withNotes(c.notes))); string(got) != c.want {
			t.Errorf("%s: %q, want %q", name, got, c.want)
		}
	}
}

// countedReader counts the bytes that are read.
type countedReader struct {
	io.ReaderAt
	n int
}

func (r *countedReader) ReadAt(b []byte, at int64) (int, error) {
	r.n += len(b)
	return r.ReaderAt.ReadAt(b, at)
}

// The search for a build ID reads at most a part of a file with many large segments of notes.
func TestBuildIDOfLargeNotes(t *testing.T) {
	const most = 128 << 10
	b := withNotes(make([]byte, 1<<20))
	binary.LittleEndian.PutUint16(b[56:], mostPrograms)
	headers := bytes.Repeat(b[headerSize:][:programSize], mostPrograms)
	copy(b[headerSize:], headers)
	r := &countedReader{ReaderAt: bytes.NewReader(b)}
	if id := BuildID(r); id != nil || r.n > most {
		t.Errorf("%x, %d bytes are read, want at most %d", id, r.n, most)
	}
}

// Files with arbitrary changes cause no panic.
func TestBuildIDOfDamagedFile(t *testing.T) {
	rng := rand.New(rand.NewPCG(1, 2))
	file := withNotes(append(note(1, noteName, "abcd"), note(noteBuildID, noteName, "0123456789abcdefghij")...))
	for range 20000 {
		b := bytes.Clone(file)
		for range 1 + rng.IntN(4) {
			b[rng.IntN(len(b))] = byte(rng.Uint32())
		}
		BuildID(bytes.NewReader(b[:rng.IntN(len(b)+1)]))
		BuildID(bytes.NewReader(b))
	}
}
