package debian

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
)

// Unpack downloads a Debian package and extracts its files into dir, without installing it.
func Unpack(ctx context.Context, pkg, dir string) error {
	downloads, err := os.MkdirTemp("", "loam-deb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(downloads)
	// As root, because apt's own user cannot write to downloads.
	if _, err := command(ctx, downloads, "apt-get", "download", "-q", "-o", "APT::Sandbox::User=root", pkg); err != nil {
		return err
	}
	files, err := filepath.Glob(filepath.Join(downloads, "*.deb"))
	if err != nil || len(files) != 1 {
		return fmt.Errorf("apt-get download %s: %d files, %v", pkg, len(files), err)
	}
	if err := os.MkdirAll(dir, 0o755); err != nil {
		return err
	}
	_, err = command(ctx, "", "dpkg-deb", "--extract", files[0], dir)
	return err
}

// command runs a program in dir and returns its standard output. The error includes its standard error.
func command(ctx context.Context, dir, name string, args ...string) ([]byte, error) {
	cmd := exec.CommandContext(ctx, name, args...)
	cmd.Dir = dir
	out, err := cmd.Output()
	var exit *exec.ExitError
	if errors.As(err, &exit) {
		err = fmt.Errorf("%w: %s", err, strings.TrimSpace(string(exit.Stderr)))
	}
	if err != nil {
		return nil, fmt.Errorf("%s: %w", name, err)
	}
	return out, nil
}
