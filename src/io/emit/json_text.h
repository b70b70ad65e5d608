// JSON written as it comes, without a tree: programs are tens of megabytes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace shardprop::emit {

class JsonText {
 public:
  JsonText& open(char bracket) {
    separate();
    out_ += bracket;
    first_ = true;
    return *this;
  }
  JsonText& close(char bracket) {
    out_ += bracket;
    first_ = false;
    return *this;
  }
  JsonText& key(std::string_view name) {
    separate();
    quote(name);
    out_ += ':';
    first_ = true;  // what follows is its value
    return *this;
  }
  JsonText& text(std::string_view value) {
    separate();
    quote(value);
    return *this;
  }
  JsonText& number(std::int64_t value) { return raw(std::to_string(value)); }
  JsonText& real(double value);
  JsonText& boolean(bool value) { return raw(value ? "true" : "false"); }
  JsonText& null() { return raw("null"); }
  // Well-formed JSON.
  JsonText& raw(std::string_view json) {
    separate();
    out_ += json;
    return *this;
  }

  std::string take() { return std::move(out_); }

 private:
  void separate() {
    if (!first_) out_ += ',';
    first_ = false;
  }
  void quote(std::string_view value);

  std::string out_;
  bool first_ = true;
};

}  // namespace shardprop::emit
