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

// Results as text, one line each: JSON lines (every line an object, RFC 8259) or
// CSV (RFC 4180, with a header line). The address comes first in both, and the
// port second where there is one, so that a run which goes on can read back who
// has answered; see ReadAnswered.

// Format is how results are written.
type Format uint8

// Formats.
const (
	JSONLines Format = iota
	CSV
)

// Field is one thing about a result.
type Field uint8

// Fields. The address is not among them, since it is always written.
const (
	FieldPort Field = iota
	FieldAnswer
	FieldCode // of an ICMP error
	FieldTTL  // that the answer had left
	FieldRTT  // in milliseconds, null or empty if it is not known
	FieldFrom // who answered
	FieldTime // when, in seconds since 1970
)

var fieldNames = [...]string{
	FieldPort: "port", FieldAnswer: "answer", FieldCode: "code", FieldTTL: "ttl",
	FieldRTT: "rtt_ms", FieldFrom: "from", FieldTime: "time",
}

// DefaultFields are what is written if the user says nothing.
func DefaultFields(k Kind) []Field {
	if k == Echo {
		return []Field{FieldAnswer, FieldTTL, FieldRTT, FieldTime}
	}
	return []Field{FieldPort, FieldAnswer, FieldTTL, FieldRTT, FieldTime}
}

// ParseFields reads names of fields that are joined by commas. The port of a kind
// that has one is written whether it is named or not, before all others.
func ParseFields(list string, k Kind) ([]Field, error) {
	var fields []Field
	if k != Echo {
		fields = append(fields, FieldPort)
	}
names:
	for name := range strings.SplitSeq(list, ",") {
		if name == "address" {
			continue
		}
		for f, known := range fieldNames {
			if name == known {
				if Field(f) != FieldPort || k == Echo {
					fields = append(fields, Field(f))
				}
				continue names
			}
		}
		return nil, fmt.Errorf("there is no field %q; there are address, %s", name, strings.Join(fieldNames[:], ", "))
	}
	return fields, nil
}

// Writer writes results. It keeps back what fits its buffer until Flush.
type Writer struct {
	out    *bufio.Writer
	format Format
	fields []Field
	line   []byte
}

// NewWriter returns a writer to out. header says whether CSV begins with the names
// of its columns, which a file that is continued has already.
func NewWriter(out io.Writer, format Format, fields []Field, header bool) *Writer {
	w := &Writer{out: bufio.NewWriterSize(out, 1<<16), format: format, fields: fields}
	if format == CSV && header {
		w.out.WriteString("address") // an error comes back from every later call
		for _, f := range fields {
			w.out.WriteString("," + fieldNames[f])
		}
		w.out.WriteByte('\n')
	}
	return w
}

// Write takes results; it has the form of Config.Record.
func (w *Writer) Write(rs []Result) error {
	for i := range rs {
		w.line = w.appendLine(w.line[:0], &rs[i])
		if _, err := w.out.Write(w.line); err != nil {
			return err
		}
	}
	return nil
}

// Flush writes what was kept back.
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

// appendValue writes one field, text between quotes, and none if there is nothing
// to write.
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
	case FieldFrom:
		return append(r.From.AppendTo(append(b, quote...)), quote...)
	}
	micro := r.At.UnixMicro()
	b = append(strconv.AppendInt(b, micro/1e6, 10), '.')
	var digits [8]byte
	fraction := strconv.AppendInt(digits[:0], 1e6+micro%1e6, 10) // a one in front keeps the zeros
	return append(b, fraction[1:]...)
}

// ErrNotResults is in the errors of ReadAnswered.
var ErrNotResults = errors.New("is no line of results")

// ReadAnswered reads what a Writer wrote, and calls yield for the address and
// port (0 if there is none) of each result. It returns how many bytes whole lines
// take: what a crash cut off behind them is to be truncated before more is
// appended.
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

// parseLine reads the front of a line.
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
	if k == Echo {
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
