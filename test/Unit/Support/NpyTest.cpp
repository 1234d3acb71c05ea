//===- NpyTest.cpp - .npy files, 16-bit floats, outputs -------------------===//

#include "lib/Support/Npy.h"
#include "lib/Support/HalfFloat.h"
#include "lib/Support/OutputFiles.h"
#include "llvm/Support/FileSystem.h"
#include "llvm/Support/Path.h"
#include "llvm/Support/raw_ostream.h"
#include "gmock/gmock.h"
#include <cmath>
#include <limits>

using namespace moa;
using testing::ElementsAre;
using testing::HasSubstr;

namespace {

/// A directory that is gone after the test.
class Files : public testing::Test {
protected:
  void SetUp() override { ASSERT_FALSE(llvm::sys::fs::createUniqueDirectory("moa-npy", directory)); }
  void TearDown() override { llvm::sys::fs::remove_directories(directory); }

  std::string path(llvm::StringRef name) { return (directory + "/" + name).str(); }
  std::string write(llvm::StringRef name, llvm::StringRef contents) {
    std::error_code error;
    llvm::raw_fd_ostream(path(name), error) << contents;
    return path(name);
  }
  std::string readError(llvm::StringRef contents) {
    auto array = readNpy(write("a.npy", contents));
    return array ? "" : llvm::toString(array.takeError());
  }
  unsigned countFiles() {
    std::error_code error;
    unsigned count = 0;
    for (llvm::sys::fs::directory_iterator file(directory, error), end; !error && file != end; file.increment(error))
      ++count;
    return count;
  }

  llvm::SmallString<128> directory;
};

/// A version-1 file with this dictionary.
std::string makeFile(std::string header, std::string data = "") {
  header += '\n';
  return std::string("\x93NUMPY\x01\x00", 8) + char(header.size()) + '\0' + header + data;
}

TEST_F(Files, ReadsWhatItWrites) {
  std::vector<float> values = {1, 2, 3, 4, 5, 6};
  llvm::ArrayRef<char> bytes(reinterpret_cast<char *>(values.data()), 24);
  for (std::vector<int64_t> shape : {std::vector<int64_t>{6}, {2, 3}, {1, 2, 3, 1}}) {
    std::string file = writeNpy("f4", shape, bytes);
    auto array = readNpy(write("a.npy", file));
    ASSERT_TRUE(bool(array)) << llvm::toString(array.takeError());
    EXPECT_EQ(array->type, "f4");
    EXPECT_EQ(array->shape, shape);
    EXPECT_EQ(array->bytes, bytes);
    EXPECT_EQ((file.size() - 24) % 64, 0u);
  }
}

TEST_F(Files, ScalarsAndEmptyArrays) {
  double value = 2.5;
  auto scalar = readNpy(write("s.npy", writeNpy("f8", {}, {reinterpret_cast<char *>(&value), 8})));
  ASSERT_TRUE(bool(scalar));
  EXPECT_TRUE(scalar->shape.empty());
  EXPECT_EQ(scalar->getNumElements(), 1);
  auto empty = readNpy(write("e.npy", writeNpy("b1", {3, 0}, {})));
  ASSERT_TRUE(bool(empty));
  EXPECT_THAT(empty->shape, ElementsAre(3, 0));
}

TEST_F(Files, RefusesWithTheReason) {
  EXPECT_THAT(readError(""), HasSubstr("truncated"));
  EXPECT_THAT(readError("PK\x03\x04 not this"), HasSubstr("not a .npy file"));
  EXPECT_THAT(readError("\x93NUMPY\x01"), HasSubstr("truncated"));
  EXPECT_THAT(readError(makeFile("{'descr': '<f4', 'fortran_order': False, "
                                 "'shape': (3,), }",
                                 "12345678")),
              HasSubstr("truncated: 12 bytes of elements expected, 8 found"));
  EXPECT_THAT(readError(makeFile("{'descr': '<f4', 'fortran_order': False, "
                                 "'shape': (1,), }",
                                 "12345678")),
              HasSubstr("too long"));
  EXPECT_THAT(readError(makeFile("{'descr': '<f4', 'fortran_order': True, "
                                 "'shape': (1, 1), }",
                                 "1234")),
              HasSubstr("Fortran order"));
  EXPECT_THAT(readError(makeFile("{'descr': '>f4', 'fortran_order': False, "
                                 "'shape': (1,), }",
                                 "1234")),
              HasSubstr("the elements are big-endian ('>f4'); save x.astype('<f4')"));
  EXPECT_THAT(readError(makeFile("{'descr': '<c8', 'fortran_order': False, "
                                 "'shape': (1,), }")),
              HasSubstr("'<c8'"));
  EXPECT_THAT(readError(makeFile("{'descr': '<f4', 'fortran_order': False, "
                                 "'shape': (-1,), }")),
              HasSubstr("the shape in the header is senseless: (-1)"));
  EXPECT_THAT(readError(makeFile("{'descr': '<f4', 'fortran_order': False, "
                                 "'shape': (4611686018427387904, 4), }")),
              HasSubstr("is senseless: (4611686018427387904, 4)"));
  EXPECT_THAT(readError(makeFile("{'descr': '<f4'}")), HasSubstr("fortran_order"));
  auto missing = readNpy(path("none.npy"));
  ASSERT_FALSE(bool(missing));
  EXPECT_THAT(llvm::toString(missing.takeError()), HasSubstr("none.npy"));
}

TEST_F(Files, OutputsAppearTogetherOrNotAtAll) {
  {
    OutputFiles files;
    EXPECT_FALSE(bool(files.add(path("a"), "1")));
    EXPECT_FALSE(bool(files.add(path("b"), "2")));
    EXPECT_FALSE(bool(files.commit()));
  }
  EXPECT_TRUE(llvm::sys::fs::exists(path("a")));
  EXPECT_EQ(countFiles(), 2u);
  {
    OutputFiles files;
    EXPECT_FALSE(bool(files.add(path("c"), "3")));
    llvm::Error error = files.add(path("nowhere/d"), "4");
    EXPECT_THAT(llvm::toString(std::move(error)), HasSubstr("nowhere/d"));
  }
  EXPECT_EQ(countFiles(), 2u);
}

TEST_F(Files, LinksAreFollowedAndDevicesStay) {
  write("real", "old");
  ASSERT_FALSE(llvm::sys::fs::create_link("real", path("link")));
  OutputFiles files;
  EXPECT_FALSE(bool(files.add(path("link"), "new")));
  EXPECT_FALSE(bool(files.add("/dev/null", "gone")));
  EXPECT_FALSE(bool(files.commit()));
  EXPECT_TRUE(llvm::sys::fs::is_symlink_file(path("link")));
  auto text = llvm::MemoryBuffer::getFile(path("real"));
  ASSERT_TRUE(bool(text));
  EXPECT_EQ((*text)->getBuffer(), "new");
  EXPECT_FALSE(llvm::sys::fs::is_regular_file("/dev/null"));
}

//===----------------------------------------------------------------------===//
// 16-bit floats
//===----------------------------------------------------------------------===//

TEST(HalfFloat, EveryPatternRoundTrips) {
  for (unsigned bits = 0; bits < 0x10000; ++bits) {
    double half = fromFloat16(bits), brain = fromBFloat16(bits);
    if (std::isnan(half))
      EXPECT_TRUE(std::isnan(fromFloat16(toFloat16(half))));
    else
      EXPECT_EQ(toFloat16(half), bits);
    if (std::isnan(brain))
      EXPECT_TRUE(std::isnan(fromBFloat16(toBFloat16(brain))));
    else
      EXPECT_EQ(toBFloat16(brain), bits);
  }
}

TEST(HalfFloat, RoundsToNearestEven) {
  EXPECT_EQ(toBFloat16(1 + 0x1p-8), 0x3f80);           // a tie, to even
  EXPECT_EQ(toBFloat16(1 + 0x1p-8 + 0x1p-40), 0x3f81); // one rounding only
  EXPECT_EQ(toBFloat16(1 + 3 * 0x1p-8), 0x3f82);
  EXPECT_EQ(toFloat16(65519.9), 0x7bff);
  EXPECT_EQ(toFloat16(65520), 0x7c00);
  EXPECT_EQ(toFloat16(0x1p-25), 0);
  EXPECT_EQ(toFloat16(0x1p-25 * 1.0001), 1);
  EXPECT_EQ(toFloat16(-0.0), 0x8000);
  EXPECT_EQ(toBFloat16(-std::numeric_limits<double>::infinity()), 0xff80);
  EXPECT_EQ(toBFloat16(std::numeric_limits<double>::max()), 0x7f80);
}

} // namespace
