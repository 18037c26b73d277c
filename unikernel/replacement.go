package unikernel

import (
	"context"
	"encoding/json"
	"errors"
	"path"
)

// Replace lines of a go.mod apply only in the main module, and `go install path@version` rejects a module
// that has any. Loam instead copies replace lines that name another module into the module in which it
// builds the program. Without them it would build another program than its authors do, or none. Replace
// lines that name a folder are ignored: the folder is not in the module cache.

// replacement is a replace line of a go.mod: Old, at one version or at all versions, becomes New.
type replacement struct {
	Old, New struct{ Path, Version string }
}

// flag returns the replacement as a flag of `go mod edit`.
func (r replacement) flag() string {
	old := r.Old.Path
	if r.Old.Version != "" {
		old += "@" + r.Old.Version
	}
	return "-replace=" + old + "=" + r.New.Path + "@" + r.New.Version
}

// replacements reads a go.mod. It returns the replacements by other modules, and the number of replacements by folders.
func replacements(ctx context.Context, t *toolchain, dir, gomod string) (by []replacement, folders int, err error) {
	out, err := t.run(ctx, dir, "mod", "edit", "-json", gomod)
	var mod struct{ Replace []replacement }
	if err == nil {
		err = json.Unmarshal(out, &mod)
	}
	for _, r := range mod.Replace {
		if r.New.Version == "" {
			folders++
		} else {
			by = append(by, r)
		}
	}
	return by, folders, err
}

// takeReplacements copies the replacements of the module that contains a package to the go.mod in dir. If no such module
// exists it does nothing: the go command reports that better when it is asked for the package.
func takeReplacements(ctx context.Context, t *toolchain, dir, pkg, version string) error {
	gomod, err := moduleFile(ctx, t, dir, pkg, version)
	if err != nil || gomod == "" {
		return err
	}
	by, _, err := replacements(ctx, t, dir, gomod)
	if err != nil || len(by) == 0 {
		return err
	}
	args := []string{"mod", "edit"}
	for _, r := range by {
		args = append(args, r.flag())
	}
	_, err = t.run(ctx, dir, args...)
	return err
}

// moduleFile returns the go.mod of the module that contains a package at a version, or an empty string. Of
// several modules, that with the longest path is used.
func moduleFile(ctx context.Context, t *toolchain, dir, pkg, version string) (string, error) {
	for p := pkg; p != "."; p = path.Dir(p) {
		out, err := t.run(ctx, dir, "list", "-m", "-json", p+"@"+version)
		var failure *Error
		switch {
		case errors.As(err, &failure):
			continue
		case err != nil:
			return "", err
		}
		var m struct{ GoMod string }
		err = json.Unmarshal(out, &m)
		return m.GoMod, err
	}
	return "", nil
}
