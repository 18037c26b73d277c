// Package daemons runs Debian's servers, unmodified, as processes in ring 3 of a virtual machine, under load from their own
// clients in the same machine, and many short commands. It has no code but tests.
//
// The root folder is Debian 12 by debootstrap with the servers' packages, as an image of ext4 that all machines use and
// none changes. It is made once, in the user's cache folder, which needs root and the network.
//
//	make daemons                                               each load lasts two seconds
//	go test ./test/daemons -daemons -run /nginx -v -seconds 60  a minute for each load, with figures
//	go test ./test/daemons -daemons -writable -run /redis -v -seconds 200  changes are written to a copy of the image
//	go test ./test/daemons -daemons -linux                      the same scripts on this Linux, in namespaces of their own
//	go test ./test/daemons -daemons -run Mix -v -timeout 2h -seconds 3600  a hundred short commands for an hour
//
// Each server has a script in testdata. It prints a line that begins with FAIL for each fault, and "done" at its end. Figures, such
// as free memory and open descriptors, are printed and are no criterion, except that open descriptors must not
// increase. During a load, the use of memory is printed every minute; with the image's changes in memory (-o snapshot), it
// includes the data that the server has written. With -writable, each machine has a copy of the image, and changes the copy.
//
// The output of the commands in testdata/mix.list, one on each line, must be
// the same as on Linux. Without -daemons, these commands run once, in a root folder with programs of this system. With the race
// detector, no test runs: servers and kernel are separate programs.
package daemons
