// Tables between Python and a program: those that it writes, as text, and those that a run is given.

#pragma once

#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

namespace netctrl
{

inline std::FILE*
Open(const std::string& path, const char* mode)
{
    std::FILE* file = std::fopen(path.c_str(), mode);
    if (!file)
    {
        std::perror(path.c_str());
        std::exit(1);
    }
    return file;
}

inline void
Close(std::FILE* file)
{
    if (std::ferror(file) || std::fclose(file) != 0)
    {
        std::perror("results");
        std::exit(1);
    }
}

/// A CSV file that is written value by value. Numbers have the digits to be read back to the last bit.
class Table
{
  public:
    explicit Table(const std::string& path)
        : m_file(Open(path, "w"))
    {
    }

    Table(const Table&) = delete;
    Table& operator=(const Table&) = delete;

    ~Table()
    {
        Close(m_file);
    }

    void Put(const std::string& text)
    {
        std::fprintf(m_file, m_begun ? ",%s" : "%s", text.c_str());
        m_begun = true;
    }

    template <class Whole, std::enable_if_t<std::is_integral_v<Whole>, int> = 0>
    void Put(Whole value)
    {
        Put(std::to_string(value));
    }

    void Put(double value, const char* format = "%.17g")
    {
        char text[64];
        std::snprintf(text, sizeof text, format, value);
        Put(std::string(text));
    }

    template <class Values>
    void PutAll(const Values& values)
    {
        for (const auto& value : values)
        {
            Put(value);
        }
    }

    void EndRow()
    {
        std::fputc('\n', m_file);
        m_begun = false;
    }

    template <class... Values>
    void Row(const Values&... values)
    {
        (Put(values), ...);
        EndRow();
    }

  private:
    std::FILE* m_file;
    bool m_begun = false; ///< the row
};

/// A table of a run, little-endian, that is taken value by value from its beginning to its very end.
class RunFile
{
  public:
    /// @param what it is called where it is none of this scenario
    explicit RunFile(const std::string& path, const char* what = "table")
        : m_path(path),
          m_what(what),
          m_file(Open(path, "rb"))
    {
    }

    template <class Value>
    std::vector<Value> Take(std::size_t count)
    {
        std::vector<Value> values(count);
        Check(std::fread(values.data(), sizeof(Value), count, m_file) == count);
        return values;
    }

    /// Values behind their number, from `least` to `most`.
    template <class Value>
    std::vector<Value> TakeCounted(uint64_t least, uint64_t most)
    {
        const uint64_t count = Take<uint64_t>(1).front();
        Check(least <= count && count <= most);
        return Take<Value>(count);
    }

    void End()
    {
        Check(std::fgetc(m_file) == EOF);
        std::fclose(m_file);
    }

  private:
    void Check(bool whole) const
    {
        if (!whole)
        {
            std::fprintf(stderr, "%s: not the %s of a run of this scenario\n", m_path.c_str(), m_what);
            std::exit(1);
        }
    }

    const std::string m_path;
    const char* m_what;
    std::FILE* m_file;
};

} // namespace netctrl
