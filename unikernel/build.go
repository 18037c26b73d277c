package unikernel

import (
	"context"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"strings"

	"loam/unikernel/image"
)

// Build builds the program; it takes a moment when nothing has changed. Two
// builds of one plan at a time wait for one another. A program that does not
// build leaves none behind.
func (p *Plan) Build(ctx context.Context) error {
	unlock, err := lock(p.dir)
	if err != nil {
		return err
	}
	defer unlock()
	list := filepath.Join(p.dir, "overlay.json")
	if err := writeOverlay(list, p.replace); err != nil {
		return err
	}
	args := append([]string{"build", "-overlay", list, "-o", p.Program}, p.at.flags...)
	args = append(args, p.target.Flags...)
	if p.target.Platform == Machine {
		args = append(args, "-ldflags="+image.LinkFlags())
	}
	_, err = p.at.tools.run(ctx, p.at.dir, append(args, p.at.args...)...)
	if err == nil {
		return nil
	}
	os.Remove(p.Program)
	return p.explain(ctx, err)
}

// BuildImage builds a program for a virtual machine and writes a file that monitors
// boot: QEMU by -kernel.
func BuildImage(ctx context.Context, t Target, out string) error {
	t.Platform = Machine
	p, err := NewPlan(ctx, t)
	if err != nil {
		return err
	}
	if err := p.Build(ctx); err != nil {
		return err
	}
	data, err := os.ReadFile(p.Program)
	if err == nil {
		err = image.Prepare(data)
	}
	if err != nil {
		return err
	}
	if err := os.WriteFile(out, data, 0o755); err != nil {
		return errorf("name a file that can be written", "%v", err)
	}
	return nil
}

// what names the target for people.
func (p *Plan) what() string { return strings.Join(p.target.Args, " ") }

// explain makes one line of why a build failed.
func (p *Plan) explain(ctx context.Context, err error) error {
	var b *Error
	if !errors.As(err, &b) || b.Output == "" {
		return err
	}
	if pkg, lerr := listPackage(ctx, p.at.tools, p.at.dir, p.at.args[0]); lerr == nil && pkg.Name != "main" {
		b.What = fmt.Sprintf("%s is package %s, not a program", p.what(), pkg.Name)
		b.Next = "name a main package"
		return b
	}
	b.What = fmt.Sprintf("%s does not build: %s", p.what(), b.What)
	if n := strings.Count(strings.TrimSpace(b.Output), "\n"); b.Next == "" && n > 1 {
		b.Next = "`go build` there shows the rest"
	}
	return b
}
