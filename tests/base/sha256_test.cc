#include "base/sha256.h"

#include <doctest/doctest.h>

#include <string>

using namespace meshplan;

TEST_CASE("the examples of FIPS 180-4") {
  CHECK(sha256_hex("") == "e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855");
  CHECK(sha256_hex("abc") == "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
  CHECK(sha256_hex("abcdbcdecdefdefgefghfghighijhijkijkljklmklmnlmnomnopnopq") ==
        "248d6a61d20638b8e5c026930c3e6039a33ce45964ff2167f6ecedd419db06c1");
  CHECK(sha256_hex(std::string(1'000'000, 'a')) == "cdc76e5c9914fb9281a1c7e284d73e67f1809a48a497200e046d39ccc7112cd0");
}

// Every length around the edges of a block and of its length field, all in one digest (made with Python's hashlib).
TEST_CASE("all lengths from 0 to 199") {
  std::string digests;
  std::string bytes;
  for (int length = 0; length < 200; ++length) {
    digests += sha256_hex(bytes);
    bytes += static_cast<char>((length * 7 + 3) % 256);
  }
  CHECK(sha256_hex(digests) == "466ee381bbc4a6de34133ad71e2d19bd7ac1efe7fbd78829b39564fb7a8e7d20");
}

TEST_CASE("bytes that come in pieces have the digest of the whole") {
  const std::string bytes(300, 'x');
  for (size_t piece = 1; piece <= bytes.size(); ++piece) {
    Sha256 digest;
    for (size_t at = 0; at < bytes.size(); at += piece) digest.update(bytes.substr(at, piece));
    CHECK(digest.hex() == sha256_hex(bytes));
  }
}
