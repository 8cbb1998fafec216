// SPDX-License-Identifier: Apache-2.0

package main_test

const fionread = 0x4004667f
