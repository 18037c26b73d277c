package exec_test

import (
	"testing"

	loam "loam/exec"
	"loam/mem"
)

// Only a mapping of a file can be code that the file makes writable; the stack is anonymous memory.
func TestWritesCode(t *testing.T) {
	const code, data = mem.Read | mem.Exec, mem.Read | mem.Write
	file := mem.NewShared(nil, mem.PageSize)
	for _, c := range []struct {
		name    string
		regions []mem.Request
		want    bool
	}{
		{"code and data", []mem.Request{{Prot: code, Object: file}, {Prot: data, Object: file}}, false},
		{"an executable stack", []mem.Request{{Prot: code, Object: file}, {Prot: code | data}}, false},
		{"a writable segment of code", []mem.Request{{Prot: data, Object: file}, {Prot: code | data, Object: file}}, true},
	} {
		var p loam.Plan
		for _, r := range c.regions {
			p.Mappings = append(p.Mappings, loam.Mapping{Request: r})
		}
		if got := p.WritesCode(); got != c.want {
			t.Errorf("%s: %v, want %v", c.name, got, c.want)
		}
	}
}
