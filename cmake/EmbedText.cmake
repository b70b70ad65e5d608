# Turns a text file into a C++ source that holds it:
#   cmake -DINPUT=<file> -DOUTPUT=<file.cc> -DSYMBOL=<name> -P EmbedText.cmake
# The symbol is a `const std::string_view` of namespace shardprop. The text is
# split into literals of a length that every compiler accepts.
file(READ "${INPUT}" text)
string(LENGTH "${text}" length)
set(chunk 12000)
set(literals "")
set(offset 0)
while(offset LESS length)
  string(SUBSTRING "${text}" ${offset} ${chunk} piece)
  string(APPEND literals "R\"__(${piece})__\"\n")
  math(EXPR offset "${offset} + ${chunk}")
endwhile()
file(WRITE "${OUTPUT}"
"#include <string_view>

namespace shardprop {

extern const std::string_view ${SYMBOL};
const std::string_view ${SYMBOL} =
${literals};

}  // namespace shardprop
")
