// The header of a .npy file: magic, version, length, and a Python dict of three keys.
#include <cstring>

#include "absl/strings/ascii.h"
#include "absl/strings/numbers.h"
#include "absl/strings/str_cat.h"
#include "base/status.h"
#include "client/cpp/npy.h"

namespace gridclock {
namespace {

constexpr absl::string_view kMagic("\x93NUMPY", 6);
constexpr std::uint64_t kMaxHeader = 1 << 20;

absl::Status Bad(absl::string_view what) {
  return absl::InvalidArgumentError(absl::StrCat("npy header: ", what));
}

// Reads the dict, which numpy writes as {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3),
// }.
class DictReader {
 public:
  explicit DictReader(absl::string_view text) : rest_(text) {}

  absl::StatusOr<NpyHeader> Read() {
    GC_RETURN_IF_ERROR(Want('{'));
    while (!Take('}')) {
      GC_ASSIGN_OR_RETURN(const std::string key, ReadString());
      GC_RETURN_IF_ERROR(Want(':'));
      GC_RETURN_IF_ERROR(ReadValue(key));
      if (Take(',')) continue;
      GC_RETURN_IF_ERROR(Want('}'));
      break;
    }
    if (!(has_descr_ && has_order_ && has_shape_)) {
      return Bad("want the keys descr, fortran_order and shape");
    }
    if (!absl::StripAsciiWhitespace(rest_).empty()) return Bad("text after the dict");
    return header_;
  }

 private:
  absl::Status ReadValue(absl::string_view key) {
    if (key == "descr" && !has_descr_) {
      has_descr_ = true;
      return ReadDescr();
    }
    if (key == "fortran_order" && !has_order_) {
      has_order_ = true;
      return ReadOrder();
    }
    if (key == "shape" && !has_shape_) {
      has_shape_ = true;
      return ReadShape();
    }
    return Bad("a key that is unknown or there twice");
  }

  absl::Status ReadDescr() {
    if (Peek() == '[') return Bad("a structured dtype; want plain elements");
    GC_ASSIGN_OR_RETURN(const std::string descr, ReadString());
    if (descr.size() < 2) return Bad(absl::StrCat("descr '", descr, "'; want one like '<f4'"));
    const char order = descr[0], kind = descr[1];
    if (kind == 'O') return Bad("an object array; those are pickled code and never read");
    if (kind == 'M' || kind == 'm') {
      return Bad(
          absl::StrCat("dates or times ('", descr, "'); want numbers: save them by .astype('i8')"));
    }
    int bytes = 0;
    if (!absl::SimpleAtoi(absl::string_view(descr).substr(2), &bytes) ||
        absl::string_view("<>|=").find(order) == absl::string_view::npos) {
      return Bad(absl::StrCat("descr '", descr, "'; want one like '<f4'"));
    }
    if (absl::string_view("fiubV").find(kind) == absl::string_view::npos ||
        (bytes != 1 && bytes != 2 && bytes != 4 && bytes != 8)) {
      return Bad(absl::StrCat("elements of type '", descr,
                              "'; want floats, integers, bools or raw items of 1 or 2 bytes"));
    }
    header_.item = {.kind = kind, .bytes = bytes, .big_endian = order == '>' && bytes > 1};
    return absl::OkStatus();
  }

  absl::Status ReadOrder() {
    for (const bool value : {true, false}) {
      const absl::string_view word = value ? "True" : "False";
      Blanks();
      if (rest_.substr(0, word.size()) != word) continue;
      rest_.remove_prefix(word.size());
      header_.fortran_order = value;
      return absl::OkStatus();
    }
    return Bad("fortran_order: want True or False");
  }

  absl::Status ReadShape() {
    GC_RETURN_IF_ERROR(Want('('));
    while (!Take(')')) {
      GC_ASSIGN_OR_RETURN(const std::int64_t size, ReadInt());
      if (header_.shape.size() == kMaxRank) {
        return Bad(absl::StrCat("rank over ", kMaxRank));
      }
      header_.shape.push_back(size);
      if (Take(',')) continue;
      return Want(')');
    }
    return absl::OkStatus();
  }

  absl::StatusOr<std::int64_t> ReadInt() {
    Blanks();
    std::size_t digits = 0;
    while (digits < rest_.size() && absl::ascii_isdigit(rest_[digits])) ++digits;
    std::int64_t value = 0;
    if (!absl::SimpleAtoi(rest_.substr(0, digits), &value)) {
      return Bad("shape: want whole numbers of at most 63 bits");
    }
    rest_.remove_prefix(digits);
    if (Peek() == 'L') rest_.remove_prefix(1);  // As Python 2 wrote them.
    return value;
  }

  absl::StatusOr<std::string> ReadString() {
    const char quote = Peek();
    if (quote != '\'' && quote != '"') return Bad("want a quoted word");
    const std::size_t end = rest_.find(quote, 1);
    if (end == absl::string_view::npos) return Bad("a quote without an end");
    std::string word(rest_.substr(1, end - 1));
    rest_.remove_prefix(end + 1);
    for (const char c : word) {
      if (!absl::ascii_isprint(c) || c == '\\') return Bad("a word that is not plain text");
    }
    return word;
  }

  void Blanks() { rest_ = absl::StripLeadingAsciiWhitespace(rest_); }
  char Peek() {
    Blanks();
    return rest_.empty() ? '\0' : rest_[0];
  }
  bool Take(char c) {
    if (Peek() != c) return false;
    rest_.remove_prefix(1);
    return true;
  }
  absl::Status Want(char c) {
    if (Take(c)) return absl::OkStatus();
    return Bad(absl::StrCat("want '", std::string(1, c), "'"));
  }

  absl::string_view rest_;
  NpyHeader header_;
  bool has_descr_ = false, has_order_ = false, has_shape_ = false;
};

std::uint64_t LittleEndian(absl::string_view bytes) {
  std::uint64_t value = 0;
  for (std::size_t i = bytes.size(); i-- > 0;) {
    value = value << 8 | static_cast<unsigned char>(bytes[i]);
  }
  return value;
}

absl::Status CheckSize(const NpyHeader& header) {
  GC_ASSIGN_OR_RETURN(const std::int64_t elements, CheckedElements(header.shape));
  std::int64_t bytes = 0;
  if (__builtin_mul_overflow(elements, header.item.bytes, &bytes)) {
    return Bad(absl::StrCat("shape ", ToText(header.shape), " is too large"));
  }
  return absl::OkStatus();
}

}  // namespace

absl::StatusOr<NpyHeader> ParseNpyHeader(absl::string_view start) {
  const absl::string_view magic = start.substr(0, kMagic.size());
  if (magic != kMagic.substr(0, magic.size())) return Bad("this is no .npy file");
  if (start.size() < 10) return absl::OutOfRangeError("npy header: the file ends in it");
  const int version = static_cast<unsigned char>(start[6]);
  if (version < 1 || version > 3) return Bad(absl::StrCat("version ", version, "; want 1 to 3"));
  const std::size_t length_bytes = version == 1 ? 2 : 4;
  const std::size_t at = 8 + length_bytes;
  if (start.size() < at) return absl::OutOfRangeError("npy header: the file ends in it");
  const std::uint64_t length = LittleEndian(start.substr(8, length_bytes));
  if (length > kMaxHeader) return Bad(absl::StrCat(length, " bytes long; want at most 1 MiB"));
  if (start.size() < at + length) return absl::OutOfRangeError("npy header: the file ends in it");
  GC_ASSIGN_OR_RETURN(NpyHeader header, DictReader(start.substr(at, length)).Read());
  header.data_offset = at + length;
  GC_RETURN_IF_ERROR(CheckSize(header));
  return header;
}

std::string MakeNpyHeader(const TensorSpec& spec) {
  const auto descr = [&]() -> std::string {
    const std::int64_t size = SizeOf(spec.dtype);
    const absl::string_view name = Name(spec.dtype);
    if (spec.dtype == DType::kBool) return "|b1";
    const bool raw = name[0] == 'b' || size == 1;
    if (raw && (name[0] == 'b' || name[0] == 'f')) return absl::StrCat("|V", size);
    return absl::StrCat(size == 1 ? "|" : "<", name.substr(0, 1), size);
  };
  std::string shape;
  for (const std::int64_t size : spec.shape) {
    absl::StrAppend(&shape, shape.empty() ? "" : ", ", size);
  }
  if (spec.shape.size() == 1) shape += ",";
  std::string dict =
      absl::StrCat("{'descr': '", descr(), "', 'fortran_order': False, 'shape': (", shape, "), }");
  constexpr std::size_t kFixed = 10, kAlign = 64;  // Magic, version and length; as numpy aligns.
  dict.append((kAlign - (kFixed + dict.size() + 1) % kAlign) % kAlign, ' ');
  dict += '\n';
  std::string out(kMagic);
  out += '\x01';
  out += '\x00';
  out += static_cast<char>(dict.size() & 0xFF);
  out += static_cast<char>(dict.size() >> 8);
  return out + dict;
}

}  // namespace gridclock
