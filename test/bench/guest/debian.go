package guest

import (
	"context"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
)

// The Linux guest is Debian's kernel for machines that are virtual, as it is: nothing
// of it is built here. Its drivers for virtio are modules.

// metapackage always needs the newest kernel.
const metapackage = "linux-image-cloud-amd64"

// cacheDir is where its files lie, in the user's cache folder; "make test" keeps what
// else it takes out of packages there.
const cacheDir = "loam-ci"

// drivers are the modules that the card needs, each after those that it needs itself.
var drivers = []string{
	"drivers/virtio/virtio_ring.ko",
	"drivers/virtio/virtio.ko",
	"drivers/virtio/virtio_pci_legacy_dev.ko",
	"drivers/virtio/virtio_pci_modern_dev.ko",
	"drivers/virtio/virtio_pci.ko",
	"drivers/virtio/virtio_mmio.ko",
	"net/core/failover.ko",
	"drivers/net/net_failover.ko",
	"drivers/net/virtio_net.ko",
}

// debian is a kernel that is there.
type debian struct {
	image   string   // the file
	modules []string // the files of drivers
}

// findDebian returns Debian's kernel, which it fetches if it is not there.
func findDebian(ctx context.Context) (*debian, error) {
	cache, err := os.UserCacheDir()
	if err != nil {
		return nil, err
	}
	dir := filepath.Join(cache, cacheDir)
	if d, err := debianIn(dir); err == nil {
		return d, nil
	}
	if err := fetchDebian(ctx, dir); err != nil {
		return nil, fmt.Errorf("Debian's kernel is not in %s and cannot be fetched: %w", dir, err)
	}
	return debianIn(dir)
}

// debianIn looks for the newest kernel below a folder.
func debianIn(dir string) (*debian, error) {
	images, err := filepath.Glob(filepath.Join(dir, "boot", "vmlinuz-*-cloud-amd64"))
	if err != nil || len(images) == 0 {
		return nil, errors.Join(os.ErrNotExist, err)
	}
	slices.Sort(images)
	d := &debian{image: images[len(images)-1]}
	_, release, _ := strings.Cut(filepath.Base(d.image), "-")
	for _, name := range drivers {
		file := filepath.Join(dir, "lib/modules", release, "kernel", name)
		if _, err := os.Stat(file); err != nil {
			return nil, err
		}
		d.modules = append(d.modules, file)
	}
	return d, nil
}

// fetchDebian takes the files out of the package, without installing it: that would
// change how this machine boots.
func fetchDebian(ctx context.Context, dir string) error {
	downloads, err := os.MkdirTemp("", "loam-bench-deb-")
	if err != nil {
		return err
	}
	defer os.RemoveAll(downloads)
	out, err := command(ctx, downloads, "apt-cache", "depends", metapackage)
	if err != nil {
		return err
	}
	_, rest, found := strings.Cut(string(out), "Depends: ")
	pkg, _, _ := strings.Cut(rest, "\n")
	if !found {
		return fmt.Errorf("apt-cache says nothing of %s: %q", metapackage, out)
	}
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

// command runs a program and returns what it prints.
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
