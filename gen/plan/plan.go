// Package plan parses the YAML file that describes a run of the packet engine:
//
//	interface: eth0
//	method: ring          # as for loam gen --method
//	queues: 1
//	rx: eth1              # receive there, and report what was lost
//	next-hop: 02:00:00:00:00:02
//	streams:
//	  - name: voice
//	    template: eth; ip dst=10.0.0.2; udp dport=5060
//	    size: 64-128      # as for loam gen --size
//	    rate: 10kpps
//	    flows: 10
//	    vary:
//	      ip.src: 10.1.0.0/16
//	  - name: bulk
//	    template: eth; vlan id=7; ip6 dst=2001:db8::2; tcp flags=A
//	    size: imix:128=7,594=4,1518=1
//	    rate: 1Gbps
//	    count: 1000000
//	steps:                # or time: 30s
//	  - time: 10s
//	  - time: 10s
//	    scale: 50%        # of the streams' rates
//
// Unknown fields are rejected, and every error contains the line of the mistake.
package plan

import (
	"bytes"
	"errors"
	"fmt"
	"io"
	"maps"
	"net"
	"reflect"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/goccy/go-yaml/ast"
	"github.com/goccy/go-yaml/parser"

	"loam/gen"
	"loam/gen/frame"
	"loam/gen/method"
	"loam/gen/pace"
	"loam/wire"
)

// Plan is the content of a file, as the configuration of a run.
type Plan struct {
	gen.Config
	RX string // the interface to receive on; "": none
}

// MaxSize is the maximum size of a file in bytes.
const MaxSize = 1 << 20

// Error is a mistake in a file.
type Error struct {
	Line  int // number of the line in the file, from 1; 0: unknown
	Wrong string
}

// Error implements error.
func (e *Error) Error() string {
	if e.Line == 0 {
		return e.Wrong
	}
	return fmt.Sprintf("line %d: %s", e.Line, e.Wrong)
}

// document is the structure of the YAML file.
type document struct {
	Interface string   `yaml:"interface"`
	Method    string   `yaml:"method"`
	Queues    int      `yaml:"queues"`
	Batch     int      `yaml:"batch"`
	Float     bool     `yaml:"float"`
	RX        string   `yaml:"rx"`
	NextHop   string   `yaml:"next-hop"`
	Qdisc     bool     `yaml:"qdisc"`
	Plain     bool     `yaml:"plain"`
	Public    bool     `yaml:"public"`
	Leave     bool     `yaml:"leave-checksum"`
	Patience  string   `yaml:"patience"`
	Seed      uint64   `yaml:"seed"`
	Time      string   `yaml:"time"`
	Streams   []stream `yaml:"streams"`
	Steps     []step   `yaml:"steps"`
}

// stream is an element of streams in the file. Its fields correspond to those of gen.Stream.
type stream struct {
	Name     string            `yaml:"name"`
	Template string            `yaml:"template"`
	Size     string            `yaml:"size"`
	Rate     string            `yaml:"rate"`
	Spacing  string            `yaml:"spacing"`
	Count    uint64            `yaml:"count"`
	Flows    int               `yaml:"flows"`
	Bare     bool              `yaml:"bare"`
	Vary     map[string]string `yaml:"vary"`
}

// step is an element of steps in the file.
type step struct {
	Time  string `yaml:"time"`
	Scale string `yaml:"scale"`
}

// Read parses a file. Mistakes in it are returned as *Error.
func Read(r io.Reader) (*Plan, error) {
	text, err := io.ReadAll(io.LimitReader(r, MaxSize+1))
	if err != nil {
		return nil, err
	}
	return Parse(text)
}

// Parse parses the text of a file. Its errors are of type *Error.
func Parse(text []byte) (*Plan, error) {
	if len(text) > MaxSize {
		return nil, &Error{Wrong: fmt.Sprintf("the file is longer than %d bytes", MaxSize)}
	}
	file, err := parser.ParseBytes(text, 0)
	if err != nil {
		return nil, ofYAML(err)
	}
	if len(file.Docs) != 1 || file.Docs[0].Body == nil {
		return nil, &Error{Wrong: "the file is to hold one document"}
	}
	var d document
	if err := yaml.NewDecoder(bytes.NewReader(text), yaml.Strict()).Decode(&d); err != nil {
		return nil, ofYAML(err)
	}
	return (&reader{file: file}).plan(&d)
}

// ofYAML converts an error of the YAML library to an *Error, with its line and message.
func ofYAML(err error) error {
	var e yaml.Error
	if errors.As(err, &e) {
		line := 0
		if t := e.GetToken(); t != nil && t.Position != nil {
			line = t.Position.Line
		}
		return &Error{line, inTerms(e.GetMessage())}
	}
	return &Error{Wrong: strings.Join(strings.Fields(err.Error()), " ")}
}

// ofGo matches the YAML library's message about a value of the wrong type. That message names Go types.
var ofGo = regexp.MustCompile(`^cannot unmarshal (\S+) into Go (?:struct field \S*?\.?(\w+)|value) of type (\S+)`)

// ofLibrary matches the YAML library's other message about a value of the wrong type. That message names YAML types.
var ofLibrary = regexp.MustCompile(`^(\w+) was used where (\w+) is expected`)

// kinds translates Go types and YAML types to the words that messages about the file use.
var kinds = map[string]string{
	"int": "a number", "uint64": "a number from 0", "bool": "true or false", "string": "text", "float64": "a number",
	"[]interface": "a list", "[]interface{}": "a list", "map[string]interface": "a block of fields", "map[string]interface{}": "a block of fields",
	"map[string]string": "a block of fields", "[]plan.stream": "a list of streams", "[]plan.step": "a list of steps",
	"plan.document": "a block of fields", "plan.stream": "a block of fields", "plan.step": "a block of fields",
}

// inTerms rewrites a message of the YAML library in the words of the file.
func inTerms(message string) string {
	if m := ofLibrary.FindStringSubmatch(message); m != nil {
		return fmt.Sprintf("a %s is wanted, and this is of the kind %s", m[2], m[1])
	}
	m := ofGo.FindStringSubmatch(message)
	if m == nil {
		return message
	}
	word := func(s string) string {
		if k := kinds[s]; k != "" {
			return k
		}
		return "another kind of value"
	}
	field := "the value"
	if m[2] != "" {
		field = fieldName(m[2])
	}
	return fmt.Sprintf("%s is to be %s, and is %s", field, word(m[3]), word(m[1]))
}

// fieldName returns the YAML name of a Go field.
func fieldName(name string) string {
	for _, of := range []reflect.Type{reflect.TypeFor[document](), reflect.TypeFor[stream](), reflect.TypeFor[step]()} {
		if f, ok := of.FieldByName(name); ok {
			return f.Tag.Get("yaml")
		}
	}
	return name
}

// reader converts a document to a Plan.
type reader struct{ file *ast.File }

// wrong returns an error about the value at a YAML path such as "$.streams[0].rate".
func (r *reader) wrong(path, format string, args ...any) error {
	return &Error{r.line(path), fmt.Sprintf(format, args...)}
}

// line returns the line of the file on which the value at a YAML path is, or 0 if it is not in the file.
func (r *reader) line(path string) int {
	p, err := yaml.PathString(path)
	if err != nil {
		return 0
	}
	node, err := p.FilterFile(r.file)
	if err != nil || node == nil || node.GetToken() == nil || node.GetToken().Position == nil {
		return 0
	}
	return node.GetToken().Position.Line
}

// plan converts the document. An error contains the line of the mistake if that is known.
func (r *reader) plan(d *document) (*Plan, error) {
	p := &Plan{RX: d.RX}
	c := &p.Config
	*c = gen.Config{Interface: d.Interface, Method: d.Method, Queues: d.Queues, Batch: d.Batch, Float: d.Float, Qdisc: d.Qdisc, Plain: d.Plain, LeaveChecksum: d.Leave, Public: d.Public}
	if c.Method == "" {
		c.Method = "ring"
	}
	if _, err := method.ByName(c.Method); err != nil {
		return nil, r.wrong("$.method", "%v", err)
	}
	if c.Interface == "" {
		return nil, &Error{Wrong: "no interface is given: interface: NAME"}
	}
	if len(d.Streams) == 0 {
		return nil, &Error{Wrong: "there are no streams"}
	}
	var err error
	if d.NextHop != "" {
		b, err := net.ParseMAC(d.NextHop)
		if err != nil || len(b) != len(c.NextHop) {
			return nil, r.wrong("$.next-hop", "%q is no address of Ethernet", d.NextHop)
		}
		c.NextHop = wire.MAC(b)
	}
	if d.Time != "" {
		if c.Time, err = r.duration("$.time", d.Time); err != nil {
			return nil, err
		}
	}
	if d.Patience != "" {
		if c.Patience, err = r.duration("$.patience", d.Patience); err != nil {
			return nil, err
		}
	}
	for i := range d.Streams {
		s, err := r.stream(&d.Streams[i], fmt.Sprintf("$.streams[%d]", i))
		if err != nil {
			return nil, err
		}
		s.Seed = d.Seed
		c.Streams = append(c.Streams, s)
	}
	return p, r.steps(d, c)
}

// duration parses a duration that is positive and at most gen.MaxTime.
func (r *reader) duration(path, s string) (time.Duration, error) {
	t, err := time.ParseDuration(s)
	if err != nil || t <= 0 || t > gen.MaxTime {
		return 0, r.wrong(path, "%q is no time; write it as 500ms, 10s or 2m", s)
	}
	return t, nil
}

// stream converts the stream at a YAML path. It also compiles the template, so that mistakes in it are reported with
// their line.
func (r *reader) stream(d *stream, path string) (s gen.Stream, err error) {
	s = gen.Stream{Name: d.Name, Count: d.Count, Flows: d.Flows, Bare: d.Bare}
	if d.Template == "" {
		return s, r.wrong(path, "the stream has no template")
	}
	if s.Template, err = frame.Parse(d.Template); err != nil {
		return s, r.wrong(path+".template", "%v", err)
	}
	for _, field := range ordered(d.Vary) {
		if err := s.Template.Set(field, d.Vary[field]); err != nil {
			return s, r.wrong(path+".vary", "%v", err)
		}
	}
	if d.Size != "" {
		if s.Sizes, err = frame.ParseSizes(d.Size); err != nil {
			return s, r.wrong(path+".size", "%v", err)
		}
	}
	if d.Rate == "" {
		return s, r.wrong(path, "the stream has no rate; write rate: 1kpps, or rate: max")
	}
	if s.Rate, err = pace.ParseRate(d.Rate); err != nil {
		return s, r.wrong(path+".rate", "%v", err)
	}
	if d.Spacing != "" {
		if s.Spacing, err = pace.ParseSpacing(d.Spacing); err != nil {
			return s, r.wrong(path+".spacing", "%v", err)
		}
	}
	if _, err := frame.Compile(s.Template, frame.Options{Sizes: s.Sizes}); err != nil {
		return s, r.wrong(path+".template", "%v", err)
	}
	return s, nil
}

// steps converts the steps. The scale of a step is 100% if it is not given.
func (r *reader) steps(d *document, c *gen.Config) error {
	if len(d.Steps) > 0 && d.Time != "" {
		return r.wrong("$.time", "there are steps, which have times of their own")
	}
	for i, s := range d.Steps {
		path := fmt.Sprintf("$.steps[%d]", i)
		t, err := r.duration(path+".time", s.Time)
		if err != nil {
			return err
		}
		scale := 1.0
		if s.Scale != "" {
			percent, isPercent := strings.CutSuffix(s.Scale, "%")
			n, err := strconv.ParseFloat(percent, 64)
			if !isPercent || err != nil || n < 0 || n > 100*gen.MaxScale || n != n {
				return r.wrong(path+".scale", "%q is no part of a rate; write it as 50%%", s.Scale)
			}
			scale = n / 100
		}
		c.Steps = append(c.Steps, gen.Step{Time: t, Scale: scale})
	}
	return nil
}

// ordered returns the keys of a map in sorted order, so that the same file always gives the same plan.
func ordered(m map[string]string) []string { return slices.Sorted(maps.Keys(m)) }
