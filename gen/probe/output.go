package probe

import (
	"bufio"
	"errors"
	"fmt"
	"io"
	"net/netip"
	"strconv"
	"strings"
	"time"
)

// Results are written as text, one per line, in one of two formats: JSON lines (each line is an object, RFC 8259) or
// CSV (RFC 4180, with a header line). In both formats, the address is first, and the port, if there is one, is second.
// So a resumed run can read from the results which questions have been answered: see ReadAnswered.

// Format is the text format of results.
type Format uint8

// Values of Format: how results are written.
const (
	JSONLines Format = iota
	CSV
)

// Field is a field of a result.
type Field uint8

// Fields. The address is not listed because it is always written.
const (
	FieldPort Field = iota
	FieldAnswer
	FieldCode // code of an ICMP error
	FieldTTL  // remaining hop limit or TTL of the answer
	FieldRTT  // round-trip time in milliseconds; null or empty if unknown
	FieldFrom // sender of the answer
	FieldTime // arrival time in seconds since 1970
	FieldMAC  // Ethernet address of a neighbour; null or empty if unknown
)

var fieldNames = [...]string{
	FieldPort: "port", FieldAnswer: "answer", FieldCode: "code", FieldTTL: "ttl",
	FieldRTT: "rtt_ms", FieldFrom: "from", FieldTime: "time", FieldMAC: "mac",
}

// DefaultFields returns the fields written by default.
func DefaultFields(k Kind) []Field {
	switch k {
	case Echo:
		return []Field{FieldAnswer, FieldTTL, FieldRTT, FieldTime}
	case Neighbour:
		return []Field{FieldMAC, FieldTime}
	}
	return []Field{FieldPort, FieldAnswer, FieldTTL, FieldRTT, FieldTime}
}

// ParseFields parses a comma-separated list of field names. For SYN and UDP probes, the port is always written, before
// the fields in the list.
func ParseFields(list string, k Kind) ([]Field, error) {
	var fields []Field
	if k.HasPorts() {
		fields = append(fields, FieldPort)
	}
names:
	for name := range strings.SplitSeq(list, ",") {
		if name == "address" {
			continue
		}
		for f, known := range fieldNames {
			if name == known {
				if Field(f) != FieldPort || !k.HasPorts() {
					fields = append(fields, Field(f))
				}
				continue names
			}
		}
		return nil, fmt.Errorf("there is no field %q; there are address, %s", name, strings.Join(fieldNames[:], ", "))
	}
	return fields, nil
}

// Writer writes results. It buffers output until Flush.
type Writer struct {
	out    *bufio.Writer
	format Format
	fields []Field
	line   []byte
}

// NewWriter returns a Writer that writes to out. header makes it write a line of column names first, for CSV. It is
// false if the file to continue already has such a line.
func NewWriter(out io.Writer, format Format, fields []Field, header bool) *Writer {
	w := &Writer{out: bufio.NewWriterSize(out, 1<<16), format: format, fields: fields}
	if format == CSV && header {
		w.out.WriteString("address") // an error is ignored here: every later call returns it
		for _, f := range fields {
			w.out.WriteString("," + fieldNames[f])
		}
		w.out.WriteByte('\n')
	}
	return w
}

// Write writes results. Its signature is that of Config.Record.
func (w *Writer) Write(rs []Result) error {
	for i := range rs {
		w.line = w.appendLine(w.line[:0], &rs[i])
		if _, err := w.out.Write(w.line); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes the buffered output.
func (w *Writer) Flush() error { return w.out.Flush() }

func (w *Writer) appendLine(b []byte, r *Result) []byte {
	if w.format == CSV {
		b = r.Addr.AppendTo(b)
		for _, f := range w.fields {
			b = appendValue(append(b, ','), r, f, "", "")
		}
		return append(b, '\n')
	}
	b = append(b, `{"address":"`...)
	b = append(r.Addr.AppendTo(b), '"')
	for _, f := range w.fields {
		b = append(b, `,"`...)
		b = append(b, fieldNames[f]...)
		b = appendValue(append(b, `":`...), r, f, `"`, "null")
	}
	return append(b, "}\n"...)
}

// appendValue appends the text of one field of a result. Strings are enclosed in quote.
// If the value is missing, it appends the text none.
func appendValue(b []byte, r *Result, f Field, quote, none string) []byte {
	switch f {
	case FieldPort:
		return strconv.AppendUint(b, uint64(r.Port), 10)
	case FieldAnswer:
		return append(append(append(b, quote...), r.Answer.String()...), quote...)
	case FieldCode:
		return strconv.AppendUint(b, uint64(r.Code), 10)
	case FieldTTL:
		return strconv.AppendUint(b, uint64(r.HopLimit), 10)
	case FieldRTT:
		if r.RTT < 0 {
			return append(b, none...)
		}
		return strconv.AppendFloat(b, float64(r.RTT)/float64(time.Millisecond), 'f', 3, 64)
	case FieldMAC:
		if r.MAC.IsZero() {
			return append(b, none...)
		}
		return append(append(append(b, quote...), r.MAC.String()...), quote...)
	case FieldFrom:
		return append(r.From.AppendTo(append(b, quote...)), quote...)
	}
	micro := r.At.UnixMicro()
	b = append(strconv.AppendInt(b, micro/1e6, 10), '.')
	var digits [8]byte
	fraction := strconv.AppendInt(digits[:0], 1e6+micro%1e6, 10) // the leading 1 preserves the zeros
	return append(b, fraction[1:]...)
}

// ErrNotResults is wrapped by the errors of ReadAnswered.
var ErrNotResults = errors.New("is no line of results")

// ReadAnswered parses text that a Writer has written, and calls yield for the address and port of each result; the port
// is 0 if there is none. It returns the total size of all complete lines in bytes. If the last line is incomplete
// because of a crash, the caller must remove it before appending more results.
func ReadAnswered(in io.Reader, format Format, k Kind, yield func(netip.Addr, uint16)) (whole int64, err error) {
	lines := bufio.NewReaderSize(in, 1<<16)
	for n := 1; ; n++ {
		line, err := lines.ReadSlice('\n')
		if err == io.EOF {
			return whole, nil
		}
		if err != nil {
			return whole, fmt.Errorf("line %d: %w", n, err)
		}
		addr, port, ok := parseLine(string(line[:len(line)-1]), format, k)
		switch {
		case ok:
			yield(addr, port)
		case n > 1 || format != CSV || !strings.HasPrefix(string(line), "address"):
			return whole, fmt.Errorf("line %d %w", n, ErrNotResults)
		}
		whole += int64(len(line))
	}
}

// parseLine parses the address and the port at the start of a line.
func parseLine(line string, format Format, k Kind) (addr netip.Addr, port uint16, ok bool) {
	behind, beforePort, afterPort := ",", ",", ","
	if format == JSONLines {
		if line, ok = strings.CutPrefix(line, `{"address":"`); !ok || !strings.HasSuffix(line, "}") {
			return addr, 0, false
		}
		behind, beforePort, afterPort = `"`, `,"port":`, ",}"
	}
	text, rest, found := strings.Cut(line, behind)
	addr, err := netip.ParseAddr(text)
	if err != nil || !found && format == JSONLines {
		return addr, 0, false
	}
	if !k.HasPorts() {
		return addr, 0, true
	}
	if format == CSV {
		rest = beforePort + rest
	}
	if rest, found = strings.CutPrefix(rest, beforePort); !found {
		return addr, 0, false
	}
	if end := strings.IndexAny(rest, afterPort); end >= 0 {
		rest = rest[:end]
	}
	p, err := strconv.ParseUint(rest, 10, 16)
	return addr, uint16(p), err == nil
}
