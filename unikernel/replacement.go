package unikernel

import (
	"context"
	"encoding/json"
	"errors"
	"path"
)

// Replace lines of a go.mod hold for the module's own developers only, and `go install
// path@version` refuses a module that has some. Here those that name another module are
// taken over into the module that a program is built in, since without them it is not the
// program that its authors build, or none at all. Those that name a folder are not: the
// folder is not in the module cache.

// replacement is what a go.mod says of a module: Old, of one version or of all, is New.
type replacement struct {
	Old, New struct{ Path, Version string }
}

// flag is the replacement as `go mod edit` takes it.
func (r replacement) flag() string {
	old := r.Old.Path
	if r.Old.Version != "" {
		old += "@" + r.Old.Version
	}
	return "-replace=" + old + "=" + r.New.Path + "@" + r.New.Version
}

// replacements reads a go.mod: the replacements by other modules, and how many there are by
// folders.
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

// takeReplacements has the go.mod of dir replace what that of the module of a package
// does. There may be no such module: the go command says so better when it is asked for
// the package.
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

// moduleFile finds the go.mod of the module that a package of this version is in, that of
// the longest path; empty: there is none.
func moduleFile(ctx context.Context, t *toolchain, dir, pkg, version string) (string, error) {
	for p := pkg; p != "."; p = path.Dir(p) {
		out, err := t.run(ctx, dir, "list", "-m", "-json", p+"@"+version)
		var told *Error
		switch {
		case errors.As(err, &told):
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
