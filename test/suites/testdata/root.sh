# Usage: root.sh ROOT IMAGE GOROOT PACKAGES SOURCES. Makes an ext4 image with a root file system of Debian 12 and the test suites.
# The suites are in /suites: Debian's sources of busybox and perl, tests of glibc, which are built from Debian's source, and Go's
# tests, which are built from GOROOT.
set -eu
root=$1 image=$2 goroot=$3
export DEBIAN_FRONTEND=noninteractive LC_ALL=C
unset TMPDIR # the folder does not exist in the new root
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
mkdir busybox perl glibc
tar -xf busybox_*.orig.tar.* -C busybox --strip-components=1
tar -xf busybox_*.debian.tar.* -C busybox
tar -xf perl_*.orig.tar.* -C perl --strip-components=1
# The tests of busybox look for the program and its configuration in the parent of their folder.
mkdir ../busybox ../perl
mv busybox/testsuite ../busybox/
cp busybox/debian/config/pkg/deb ../busybox/.config
ln -s /bin/busybox ../busybox/busybox
# The tests of perl look for modules in ../lib. This folder gets the modules of the installed perl.
mv perl/t perl/MANIFEST ../perl/
mkdir ../perl/lib
for lib in "$root"/usr/share/perl/5.*.* "$root"/usr/lib/x86_64-linux-gnu/perl/5.*.* "$root"/usr/lib/x86_64-linux-gnu/perl-base; do
	[ -L "$lib" ] || cp -a "$lib/." ../perl/lib/
done
ln -s /usr/bin/perl ../perl/perl
ln -s /usr/bin/perl ../perl/t/perl
# The tests of glibc are built without glibc's own build, with the C library of the host. A test that needs internals of glibc, or
# files beside its own, does not build and is left out. The folder "host" has the headers that the tests share.
tar -xf glibc_*.orig.tar.* -C glibc --strip-components=1
cd glibc
mkdir host objects
for header in libc-diag array_length intprops libc-pointer-arith verify scratch_buffer; do
	cp "include/$header.h" host/
done
cp sysdeps/x86_64/stackinfo.h host/
: > host/config.h
ln -s ../support ../malloc ../test-skeleton.c host/
cc="gcc -std=gnu11 -O1 -w -pthread -D_GNU_SOURCE -include limits.h -DTIMEOUTFACTOR=1 -Dattribute_hidden="
cc="$cc -Dlibc_hidden_proto(x)= -Ihost -Isupport -iquote nptl -iquote sysdeps/pthread -iquote rt"
for name in SRCDIR OBJDIR OBJDIR_ELF_LDSO INSTDIR LIBDIR SLIBDIR BINDIR SBINDIR ROOTSBINDIR COMPLOCALEDIR SYSCONFDIR; do
	cc="$cc -D${name}_PATH=\"/usr\""
done
export cc
ls support/*.c | grep -v -e /tst- -e README -e container -e /test- -e links-dso |
	xargs -P "$(nproc)" -I{} sh -c '$cc -c -o "objects/$(basename {} .c).o" {} 2>/dev/null || :'
ar rcs libsupport.a objects/*.o
for folder in nptl sysdeps/pthread rt signal posix io misc sysdeps/unix/sysv/linux; do
	export out="$root/suites/glibc/${folder##*/}"
	mkdir -p "$out"
	ls "$folder"/tst-*.c |
		xargs -P "$(nproc)" -I{} sh -c '$cc -o "$out/$(basename {} .c)" {} libsupport.a -lm -lrt 2>/dev/null || :'
done
cd ../..
rm -rf source

# A Go test runs in the folder of its package, which may contain files that the test reads. Other files are in folders of GOROOT.
mkdir -p go/src go/lib/time
cp -a "$goroot/src/testdata" go/src/
cp -a "$goroot/lib/time/zoneinfo.zip" go/lib/time/
for package in os os/exec os/signal os/user syscall net time runtime; do
	mkdir -p "go/src/$package"
	cp -a "$goroot/src/$package/." "go/src/$package/"
	(cd "$goroot/src" && CGO_ENABLED=0 "$goroot/bin/go" test -c -o "$root/suites/go/src/$package/package.test" "$package")
done
useradd --root "$root" -m -u 1000 tester
rm -rf "$root"/var/cache/apt/*.bin "$root"/var/cache/apt/archives/*.deb "$root"/var/lib/apt/lists/*
rm -rf "$root"/usr/share/doc/* "$root"/usr/share/man/*
mke2fs -q -t ext4 -d "$root" "$image" 2000M
chmod 644 "$image"
