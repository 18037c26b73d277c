package unikernel

import (
	"context"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"slices"
	"strings"

	"loam"
	"loam/unikernel/overlay"
)

// std is the overlay of the standard library for one toolchain, on disk.
type std struct {
	hash    string
	replace map[string]string // path below GOROOT -> file in the cache
	first   []string          // packages that are initialised before the program's
}

// firstFile holds std.first in the cache.
const firstFile = "first.txt"

// prepareStd makes the overlay for a toolchain, or finds it in the cache.
// checkout says that the program is of Loam's own module, whose packages are
// then those of that module.
func prepareStd(ctx context.Context, c cache, t *toolchain, checkout bool) (*std, error) {
	files, err := overlay.Generate(t.GOROOT, t.GOVERSION)
	if err != nil {
		if errors.Is(err, overlay.ErrUnknownGo) {
			return nil, errorf("use one of "+overlay.Known()+" (GOTOOLCHAIN chooses)", "%v", err)
		}
		return nil, err
	}
	own, err := guestSource(loam.Source)
	if err != nil {
		return nil, err
	}
	if !checkout {
		for name, src := range own {
			files[name] = src
		}
	}
	hash := hashFiles(t.GOROOT, files, own)
	dir := c.path("std", hash)
	s := &std{hash: hash, replace: map[string]string{}}
	for name := range files {
		s.add(t, dir, name)
	}
	err = c.fill(dir, func(tmp string) error {
		for name, src := range files {
			if err := writeFile(filepath.Join(tmp, name), src); err != nil {
				return err
			}
		}
		order, err := initOrder(ctx, t, tmp, files, own)
		if err != nil {
			return err
		}
		if err := writeFile(filepath.Join(tmp, firstFile), []byte(strings.Join(order, "\n"))); err != nil {
			return err
		}
		return writeFile(filepath.Join(tmp, overlay.InitOrderFile), overlay.InitOrder(order))
	})
	if err != nil {
		return nil, err
	}
	s.add(t, dir, overlay.InitOrderFile)
	first, err := os.ReadFile(filepath.Join(dir, firstFile))
	s.first = strings.Fields(string(first))
	return s, err
}

// adjustFirst is for the tests of a package that Loam itself imports, such as
// net: with its tests the package imports more, and all of that has to be
// initialised before it. The file goes to dir.
func (s *std) adjustFirst(ctx context.Context, t *toolchain, dir string, p listed) error {
	if !slices.Contains(s.first, p.ImportPath) {
		return nil
	}
	imports, err := t.run(ctx, p.Dir, "list", "-f", `{{join .TestImports "\n"}}`, p.ImportPath)
	if err != nil {
		return err
	}
	args := append([]string{"list", "-deps", "-f", "{{.ImportPath}}", p.ImportPath}, strings.Fields(string(imports))...)
	out, err := t.run(ctx, p.Dir, args...)
	if err != nil {
		return err
	}
	all := append(strings.Fields(string(out)), s.first...)
	slices.Sort(all)
	file := filepath.Join(dir, filepath.Base(overlay.InitOrderFile))
	s.replace[filepath.Join(t.GOROOT, "src", overlay.InitOrderFile)] = file
	return writeFile(file, overlay.InitOrder(slices.Compact(all)))
}

func (s *std) add(t *toolchain, dir, name string) {
	s.replace[filepath.Join(t.GOROOT, "src", name)] = filepath.Join(dir, name)
}

// hashFiles names what the overlay is made from.
func hashFiles(goroot string, sets ...overlay.Files) string {
	parts := []string{goroot, firstFile} // and so how the folder is laid out
	for _, files := range sets {
		for _, name := range sortedKeys(files) {
			parts = append(parts, name, string(files[name]))
		}
		parts = append(parts, "")
	}
	return digest(parts...)
}

func sortedKeys[V any](m map[string]V) []string {
	keys := make([]string, 0, len(m))
	for k := range m {
		keys = append(keys, k)
	}
	slices.Sort(keys)
	return keys
}

// initOrder lists the packages that must be initialised before the program's:
// those of a guest and what they import. dir has files, which are all but the
// result; own are Loam's packages, which files may lack.
func initOrder(ctx context.Context, t *toolchain, dir string, files, own overlay.Files) ([]string, error) {
	replace := map[string]string{}
	for name := range files {
		replace[filepath.Join(t.GOROOT, "src", name)] = filepath.Join(dir, name)
	}
	for name, src := range own {
		path := filepath.Join(dir, name)
		if err := writeFile(path, src); err != nil {
			return nil, err
		}
		replace[filepath.Join(t.GOROOT, "src", name)] = path
	}
	list := filepath.Join(dir, "list.json")
	if err := writeOverlay(list, replace); err != nil {
		return nil, err
	}
	defer os.Remove(list)
	// In the root folder no module is in the way.
	out, err := t.run(ctx, "/", "list", "-overlay", list, "-deps", "-f", "{{.ImportPath}}", runtimePackage)
	return strings.Fields(string(out)), err
}

// writeOverlay writes the file for go build -overlay.
func writeOverlay(path string, replace map[string]string) error {
	data, err := json.MarshalIndent(struct{ Replace map[string]string }{replace}, "", "\t")
	if err != nil {
		return err
	}
	return writeFile(path, data)
}
