# Makes an image of ext4 with a root folder of Debian 12 and the test suites: root.sh ROOT IMAGE GOROOT PACKAGES SOURCES.
# The suites are in /suites: the sources of busybox and perl as Debian has them, and Go's tests, built from GOROOT.
set -eu
root=$1 image=$2 goroot=$3
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
debootstrap --variant=minbase bookworm "$root"
printf '#!/bin/sh\nexit 101\n' > "$root/usr/sbin/policy-rc.d"
chmod 755 "$root/usr/sbin/policy-rc.d"
cp /etc/resolv.conf "$root/etc/resolv.conf"
mount -t proc proc "$root/proc"
chroot "$root" apt-get install -q -y --no-install-recommends $4
sed -n 's/^deb /deb-src /p' "$root/etc/apt/sources.list" > "$root/etc/apt/sources.list.d/source.list"
mkdir -p "$root/suites/source"
chroot "$root" sh -c 'apt-get update -q && cd /suites/source && apt-get source -q --download-only "$@"' sh $5
umount "$root/proc"

cd "$root/suites/source"
mkdir busybox perl
tar -xf busybox_*.orig.tar.* -C busybox --strip-components=1
tar -xf busybox_*.debian.tar.* -C busybox
tar -xf perl_*.orig.tar.* -C perl --strip-components=1
# busybox's tests look for the program and its configuration one folder above theirs.
mkdir ../busybox ../perl
mv busybox/testsuite ../busybox/
cp busybox/debian/config/pkg/deb ../busybox/.config
ln -s /bin/busybox ../busybox/busybox
# Perl's tests look for modules in ../lib: those of the installed perl, in one folder.
mv perl/t perl/MANIFEST ../perl/
mkdir ../perl/lib
for lib in "$root"/usr/share/perl/5.*.* "$root"/usr/lib/x86_64-linux-gnu/perl/5.*.* "$root"/usr/lib/x86_64-linux-gnu/perl-base; do
	[ -L "$lib" ] || cp -a "$lib/." ../perl/lib/
done
ln -s /usr/bin/perl ../perl/perl
ln -s /usr/bin/perl ../perl/t/perl
cd ..
rm -rf source

# A test of Go's runs in its package's folder, which may have files for it. Others are in folders of GOROOT.
mkdir -p go/src go/lib/time
cp -a "$goroot/src/testdata" go/src/
cp -a "$goroot/lib/time/zoneinfo.zip" go/lib/time/
for package in os os/exec os/signal syscall net time; do
	mkdir -p "go/src/$package"
	cp -a "$goroot/src/$package/." "go/src/$package/"
	(cd "$goroot/src" && CGO_ENABLED=0 "$goroot/bin/go" test -c -o "$root/suites/go/src/$package/package.test" "$package")
done
useradd --root "$root" -m -u 1000 tester
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
rm -rf "$root"/usr/share/doc/* "$root"/usr/share/man/*
mke2fs -q -t ext4 -d "$root" "$image" 2000M
chmod 644 "$image"
