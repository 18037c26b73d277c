package trace

import (
	"bufio"
	"encoding/binary"
	"errors"
	"fmt"
	"io"

	"loam/block"
)

// The format of a log in a file: the magic, then events. Numbers are unsigned
// varints of package encoding/binary.
//
//	submission   1, id, operation, flags, offset, length, data (of a write: length bytes)
//	completion   2, id, failed (0 or 1)

const (
	magic      = "loam block log 1\n"
	submission = 1
	completion = 2

	// mostData is the maximum number of bytes of one write that Read accepts.
	mostData = 64 << 20
)

// ErrFormat is the error for a file that is not a log, or is damaged.
var ErrFormat = errors.New("trace: not a log of block requests")

// Writer is a sink that writes events to a file. Writes are buffered: see Flush.
type Writer struct {
	w   *bufio.Writer
	buf []byte
	err error
}

// NewWriter returns a writer to w.
func NewWriter(w io.Writer) *Writer {
	t := &Writer{w: bufio.NewWriterSize(w, 64<<10)}
	_, t.err = t.w.WriteString(magic)
	return t
}

// Record implements Sink. After the first error it writes nothing more; Flush returns the error.
func (w *Writer) Record(e Event) {
	if w.err != nil {
		return
	}
	w.buf = appendEvent(w.buf[:0], &e)
	if _, w.err = w.w.Write(w.buf); w.err == nil {
		_, w.err = w.w.Write(e.Data)
	}
}

func appendEvent(b []byte, e *Event) []byte {
	add := func(numbers ...uint64) {
		for _, n := range numbers {
			b = binary.AppendUvarint(b, n)
		}
	}
	if e.Completed {
		failed := uint64(0)
		if e.Failed {
			failed = 1
		}
		add(completion, e.ID, failed)
	} else {
		add(submission, e.ID, uint64(e.Op), uint64(e.Flags), uint64(e.Offset), uint64(e.Length))
	}
	return b
}

// Flush writes the buffered events. The device must not be in use.
func (w *Writer) Flush() error {
	if w.err == nil {
		w.err = w.w.Flush()
	}
	return w.err
}

// Read returns the events of a log. If the log ends inside an event, as after a crash of the
// writer, it returns the events before that one, and io.ErrUnexpectedEOF.
func Read(r io.Reader) (events []Event, err error) {
	in := bufio.NewReader(r)
	head := make([]byte, len(magic))
	if _, err := io.ReadFull(in, head); err != nil || string(head) != magic {
		return nil, ErrFormat
	}
	for {
		e, err := readEvent(in)
		if err == io.EOF {
			return events, nil
		}
		if err != nil {
			return events, err
		}
		events = append(events, e)
	}
}

// readEvent reads one event. It returns io.EOF if the log ends before the event, and
// io.ErrUnexpectedEOF if the log ends inside it.
func readEvent(in *bufio.Reader) (e Event, err error) {
	kind, err := binary.ReadUvarint(in)
	if err != nil {
		return e, err
	}
	next := func(most uint64) (n uint64) {
		if err == nil {
			if n, err = binary.ReadUvarint(in); err == io.EOF {
				err = io.ErrUnexpectedEOF
			}
		}
		if err == nil && n > most {
			err = fmt.Errorf("%w: a field is %d, at most %d", ErrFormat, n, most)
		}
		return n
	}
	const any = 1<<63 - 1
	e.ID = next(any)
	switch kind {
	case completion:
		e.Completed, e.Failed = true, next(1) == 1
	case submission:
		e.Op, e.Flags = block.Op(next(uint64(block.Ops)-1)), block.Flags(next(255))
		e.Offset, e.Length = int64(next(any)), int64(next(any))
		if err == nil && e.Op == block.Write {
			e.Data, err = readData(in, e.Length)
		}
	default:
		return e, fmt.Errorf("%w: event of kind %d", ErrFormat, kind)
	}
	return e, err
}

// readData reads the data of a write. It allocates no more than the file contains.
func readData(in *bufio.Reader, n int64) ([]byte, error) {
	if n > mostData {
		return nil, fmt.Errorf("%w: a write of %d bytes", ErrFormat, n)
	}
	data, err := io.ReadAll(io.LimitReader(in, n))
	if err == nil && int64(len(data)) < n {
		err = io.ErrUnexpectedEOF
	}
	return data, err
}
