// Package epoll implements epoll sets (epoll(7)). It uses only open file descriptions: it depends neither on processes nor
// on the kinds of files.
package epoll
