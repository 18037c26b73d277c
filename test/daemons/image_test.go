//go:build linux && !race

package daemons

import (
	"crypto/sha256"
	_ "embed"
	"encoding/hex"
	"flag"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"loam/internal/debian"
)

// packages are the packages of Debian that the root folder has in addition to those of debootstrap's minbase.
var packages = []string{
	"nginx", "redis-server", "redis-tools", "memcached", "dnsmasq-base", "bind9-dnsutils", "apache2", "postgresql-15",
	"openssh-server", "openssh-client", "curl", "apache2-utils", "wrk", "procps", "python3",
}

// makeRoot is a script with the arguments ROOT IMAGE PACKAGES. The script prevents packages from starting their
// servers (policy-rc.d), and the processes that the installation starts end with it.
//
//go:embed testdata/root.sh
var makeRoot string

var otherImage = flag.String("image", "", "an ext4 image with the programs of the scripts, in place of the image of Debian")

// image returns the path of the image of the root folder. It makes the image if there is none.
func image(t *testing.T) string {
	t.Helper()
	if *otherImage != "" {
		return *otherImage
	}
	if os.Getuid() != 0 {
		t.Skip("needs root: debootstrap makes a root folder")
	}
	cache, err := os.UserCacheDir()
	if err != nil {
		t.Fatal(err)
	}
	list := strings.Join(packages, " ")
	sum := sha256.Sum256([]byte(makeRoot + list))
	name := filepath.Join(cache, "loam-ci", "daemons-"+hex.EncodeToString(sum[:6])+".ext4")
	if _, err := os.Stat(name); err == nil {
		return name
	}
	if err := debian.MakeRoot(t.Context(), name, makeRoot, list); err != nil {
		t.Fatal(err)
	}
	return name
}
