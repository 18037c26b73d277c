package trace_test

import (
	"bytes"
	"errors"
	"io"
	"reflect"
	"testing"

	"loam/block"
	"loam/block/blocktest"
	"loam/block/memory"
	"loam/block/trace"
)

func TestConformance(t *testing.T) {
	blocktest.Run(t, func(testing.TB) block.Device {
		return trace.New(memory.New(blocktest.MinSize, memory.Config{Queues: 2}), &trace.Log{})
	}, blocktest.Allocates)
}

// A log has two events for each request (its submission and its completion), in the order in which they happened, and
// can be stored in a file and read back.
func TestLog(t *testing.T) {
	var log trace.Log
	var file bytes.Buffer
	w := trace.NewWriter(&file)
	d := trace.New(trace.New(memory.New(1<<20, memory.Config{}), &log), w)
	data := bytes.Repeat([]byte("abcd"), 256)
	for _, r := range []block.Request{
		{Op: block.Write, Offset: 512, Data: [][]byte{data[:512], data[512:]}, Flags: block.FUA},
		{Op: block.Read, Data: [][]byte{make([]byte, 512)}},
		{Op: block.Flush},
		{Op: block.Read, Offset: 1}, // rejected by the device, so not recorded
		{Op: block.WriteZeroes, Length: 1024},
	} {
		blocktest.Do(d, 0, r)
	}
	if err := errors.Join(d.Close(), w.Flush()); err != nil {
		t.Fatal(err)
	}
	want := []trace.Event{
		{ID: 1, Op: block.Write, Flags: block.FUA, Offset: 512, Length: 1024, Data: data},
		{ID: 1, Completed: true},
		{ID: 2, Op: block.Read, Length: 512},
		{ID: 2, Completed: true},
		{ID: 3, Op: block.Flush},
		{ID: 3, Completed: true},
		{ID: 4, Op: block.WriteZeroes, Length: 1024},
		{ID: 4, Completed: true},
	}
	if got := log.Events(); !reflect.DeepEqual(got, want) {
		t.Errorf("%+v\nwant %+v", got, want)
	}
	text := file.Bytes()
	if got, err := trace.Read(bytes.NewReader(text)); err != nil || !reflect.DeepEqual(got, want) {
		t.Errorf("from the file: %+v, %v", got, err)
	}
	if got, err := trace.Read(bytes.NewReader(text[:len(text)-1])); err != io.ErrUnexpectedEOF || len(got) != len(want)-1 {
		t.Errorf("from a file that was cut off: %d events, %v", len(got), err)
	}
}

// Reading terminates for every file. Events that were read can be written and read again unchanged.
func FuzzRead(f *testing.F) {
	f.Add([]byte("loam block log 1\n\x01\x01\x01\x00\x00\x02ab\x02\x01\x00"))
	f.Add([]byte("loam block log 1\n\x01\x01\x01\x00\x00\xff\xff\xff\x1f"))
	f.Fuzz(func(t *testing.T, b []byte) {
		events, err := trace.Read(bytes.NewReader(b))
		if err != nil {
			return
		}
		var again bytes.Buffer
		w := trace.NewWriter(&again)
		for _, e := range events {
			w.Record(e)
		}
		w.Flush()
		if back, err := trace.Read(&again); err != nil || !reflect.DeepEqual(back, events) {
			t.Errorf("%+v became %+v, %v", events, back, err)
		}
	})
}

// WritePieces submits its requests in the order of the pieces.
func TestOrderOfPieces(t *testing.T) {
	var log trace.Log
	d := trace.New(memory.New(4<<20, memory.Config{}), &log)
	var all []block.Piece
	for i := range int64(1000) {
		all = append(all, block.Piece{Offset: i * 1024, Data: make([]byte, 512)})
	}
	if err := errors.Join(block.NewIO(d).WritePieces(all), d.Close()); err != nil {
		t.Fatal(err)
	}
	next := int64(0)
	for _, e := range log.Events() {
		if !e.Completed && e.Offset != next {
			t.Fatalf("a request at %d instead of %d", e.Offset, next)
		} else if !e.Completed {
			next += 1024
		}
	}
	if next != 1000*1024 {
		t.Errorf("the requests end at %d", next)
	}
}
