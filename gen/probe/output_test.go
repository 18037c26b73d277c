package probe

import (
	"bytes"
	"encoding/csv"
	"encoding/json"
	"errors"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"
)

var twoResults = []Result{
	{Addr: netip.MustParseAddr("10.0.0.7"), Port: 443, Answer: SYNACK, HopLimit: 60, RTT: 1234567, From: netip.MustParseAddr("10.0.0.7"), At: time.Unix(1700000000, 42000)},
	{Addr: netip.MustParseAddr("fd00::1"), Port: 53, Answer: Unreachable, Code: 3, HopLimit: 1, RTT: -1, From: netip.MustParseAddr("fd00::ff"), At: time.Unix(1700000001, 0)},
}

func written(t testing.TB, f Format, fields []Field, rs []Result) string {
	t.Helper()
	var b bytes.Buffer
	w := NewWriter(&b, f, fields, true)
	if err := errors.Join(w.Write(rs), w.Flush()); err != nil {
		t.Fatal(err)
	}
	return b.String()
}

func TestJSONLines(t *testing.T) {
	fields, err := ParseFields("code,address,answer,ttl,rtt_ms,from,time", SYN)
	if err != nil {
		t.Fatal(err)
	}
	got := written(t, JSONLines, fields, twoResults)
	want := `{"address":"10.0.0.7","port":443,"code":0,"answer":"syn-ack","ttl":60,"rtt_ms":1.235,"from":"10.0.0.7","time":1700000000.000042}
{"address":"fd00::1","port":53,"code":3,"answer":"unreachable","ttl":1,"rtt_ms":null,"from":"fd00::ff","time":1700000001.000000}
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	for line := range strings.Lines(got) {
		if !json.Valid([]byte(line)) {
			t.Errorf("not JSON: %s", line)
		}
	}
}

func TestCSV(t *testing.T) {
	got := written(t, CSV, DefaultFields(SYN), twoResults)
	want := `address,port,answer,ttl,rtt_ms,time
10.0.0.7,443,syn-ack,60,1.235,1700000000.000042
fd00::1,53,unreachable,1,,1700000001.000000
`
	if got != want {
		t.Errorf("got\n%swant\n%s", got, want)
	}
	if rows, err := csv.NewReader(strings.NewReader(got)).ReadAll(); err != nil || len(rows) != 3 {
		t.Errorf("%v, %v", rows, err)
	}
}

func TestFieldsByName(t *testing.T) {
	if fields, err := ParseFields("address", Echo); err != nil || len(fields) != 0 {
		t.Errorf("%v, %v", fields, err)
	}
	if fields, err := ParseFields("ttl,port", UDP); err != nil || !slices.Equal(fields, []Field{FieldPort, FieldTTL}) {
		t.Errorf("%v, %v", fields, err)
	}
	const want = `there is no field "colour"; there are address, port, answer, code, ttl, rtt_ms, from, time, mac`
	if _, err := ParseFields("colour", Echo); err == nil || err.Error() != want {
		t.Errorf("%v", err)
	}
}

// ReadAnswered reads back everything that was written, for any fields. ReadAnswered ignores a last line that a crash
// has cut off, and the next run continues at the start of that line.
func TestResultsAreReadBack(t *testing.T) {
	for _, format := range []Format{JSONLines, CSV} {
		for _, k := range []Kind{Echo, SYN} {
			for _, names := range []string{"address", "answer,time"} {
				fields, err := ParseFields(names, k)
				if err != nil {
					t.Fatal(err)
				}
				text := written(t, format, fields, twoResults)
				var got []netip.AddrPort
				whole, err := ReadAnswered(strings.NewReader(text+`{"address":"10.0.0.9","po`), format, k, func(a netip.Addr, p uint16) {
					got = append(got, netip.AddrPortFrom(a, p))
				})
				want := []netip.AddrPort{netip.AddrPortFrom(twoResults[0].Addr, 443), netip.AddrPortFrom(twoResults[1].Addr, 53)}
				if k == Echo {
					want = []netip.AddrPort{netip.AddrPortFrom(twoResults[0].Addr, 0), netip.AddrPortFrom(twoResults[1].Addr, 0)}
				}
				if err != nil || whole != int64(len(text)) || !slices.Equal(got, want) {
					t.Errorf("%v %v %s: %v, %d of %d bytes, %v", format, k, names, got, whole, len(text), err)
				}
			}
		}
	}
}

func TestNotResults(t *testing.T) {
	for _, text := range []string{"hello\n", "{}\n", "10.0.0.1\n", `{"address":"10.0.0.1"}` + "\nx\n"} {
		if _, err := ReadAnswered(strings.NewReader(text), JSONLines, Echo, func(netip.Addr, uint16) {}); !errors.Is(err, ErrNotResults) {
			t.Errorf("%q: %v", text, err)
		}
	}
}

func TestWritingDoesNotAllocate(t *testing.T) {
	w := NewWriter(discard{}, JSONLines, DefaultFields(Echo), false)
	w.Write(twoResults)
	if n := testing.AllocsPerRun(100, func() { w.Write(twoResults) }); n != 0 {
		t.Errorf("%v allocations", n)
	}
}

type discard struct{}

func (discard) Write(b []byte) (int, error) { return len(b), nil }

// FuzzReadAnswered checks that no file causes a panic and the reported size is never larger than the file.
func FuzzReadAnswered(f *testing.F) {
	for _, format := range []Format{JSONLines, CSV} {
		f.Add(uint8(format), uint8(SYN), written(f, format, DefaultFields(SYN), twoResults))
	}
	f.Fuzz(func(t *testing.T, format, kind uint8, text string) {
		whole, _ := ReadAnswered(strings.NewReader(text), Format(format%2), Kind(kind%3), func(a netip.Addr, _ uint16) {
			if !a.IsValid() {
				t.Error("an address that is none")
			}
		})
		if whole < 0 || whole > int64(len(text)) {
			t.Errorf("%d bytes of %d", whole, len(text))
		}
	})
}
