package linked

import (
	"bytes"
	"debug/elf"
	"debug/gosym"
	"testing"
)

// The functions of a program and their source files are those that debug/gosym finds.
func TestTable(t *testing.T) {
	for _, flags := range [][]string{nil, {"-trimpath", "-ldflags=-s -w"}} {
		f, err := elf.NewFile(bytes.NewReader(link(t, empty, flags...)))
		if err != nil {
			t.Fatal(err)
		}
		lines, err := f.Section(".gopclntab").Data()
		if err != nil {
			t.Fatal(err)
		}
		address := f.Section(".text").Addr
		want, err := gosym.NewTable(nil, gosym.NewLineTable(lines, address))
		if err != nil {
			t.Fatal(err)
		}
		table, err := readTable(f)
		if err != nil {
			t.Fatal(err)
		}
		if table.count != len(want.Funcs) || table.count < 1000 {
			t.Fatalf("%d functions, want %d", table.count, len(want.Funcs))
		}
		for i, w := range want.Funcs {
			fn, err := table.at(i)
			if err != nil || string(fn.name) != w.Name || fn.start != w.Entry-address || fn.end != w.End-address {
				t.Fatalf("function %d is %s %#x %#x, %v; want %s", i, fn.name, fn.start, fn.end, err, w.Name)
			}
			at, err := table.fileOf(fn)
			file := string(text(table.files, uint64(at)))
			if wanted, _, _ := want.PCToLine(w.Entry); err != nil || file != wanted && w.Entry < w.End {
				t.Errorf("%s is in %q, %v; want %q", fn.name, file, err, wanted)
			}
		}
	}
}

// BenchmarkStart measures what each start of a program reads of its file. It reports allocated bytes, which do not
// depend on the load of the machine.
func BenchmarkStart(b *testing.B) {
	content := link(b, "package main\n\nimport \"net/http\"\n\nfunc main() { http.ListenAndServe(\"\", nil) }\n")
	for name, read := range map[string]func(*elf.File) error{
		"check":  Check,
		"places": func(f *elf.File) error { _, err := Places(f, []string{"runtime.read", "runtime.write1"}); return err },
	} {
		b.Run(name, func(b *testing.B) {
			b.ReportAllocs()
			for b.Loop() {
				f, err := elf.NewFile(bytes.NewReader(content))
				if err == nil {
					err = read(f)
				}
				if err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
