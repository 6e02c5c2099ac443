// Reads a file of records: a word for what it is, an id or none, and values with their names.
//
//   link a source=x target=y capacity=20000000   # a comment
//     queue=netctrl::PiQueueDisc Alpha=1.8e-05     a line that begins with a blank goes on with the record above

#pragma once

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <limits>
#include <map>
#include <sstream>
#include <string>
#include <type_traits>
#include <utility>
#include <valarray>
#include <vector>

namespace netctrl
{

using Names = std::map<std::string, int>; ///< ids with their numbers

/// A record whose values are taken one by one; whatever is missing, left over or not a number ends the program.
class Record
{
  public:
    using Values = std::vector<std::pair<std::string, std::string>>; ///< in the order of the file

    explicit Record(std::string place)
        : m_place(std::move(place))
    {
    }

    std::string kind;
    std::string id;

    /// The words of one more line.
    void Add(const std::string& line)
    {
        std::istringstream words(line.substr(0, line.find('#')));
        for (std::string word; words >> word;)
        {
            const auto sign = word.find('=');
            if (sign != std::string::npos)
            {
                m_values.emplace_back(word.substr(0, sign), word.substr(sign + 1));
                continue;
            }
            std::string& place = kind.empty() ? kind : id;
            if (!place.empty())
            {
                Refuse("has more than one id, " + word);
            }
            place = word;
        }
    }

    bool Has(const std::string& name) const
    {
        return Find(name) != m_values.end();
    }

    template <class Value = std::string>
    Value Take(const std::string& name)
    {
        const auto found = Find(name);
        if (found == m_values.end())
        {
            Refuse("has no " + name);
        }
        const std::string text = found->second;
        m_values.erase(found);
        return Read<Value>(name, text);
    }

    template <class Value>
    Value Take(const std::string& name, const Value& usual)
    {
        return Has(name) ? Take<Value>(name) : usual;
    }

    /// Numbers between commas.
    template <class Value = double>
    std::vector<Value> TakeNumbers(const std::string& name)
    {
        return ReadNumbers<Value>(name, Take(name));
    }

    /// Whole numbers between commas, or none.
    std::vector<int64_t> TakeNumbersOrNone(const std::string& name)
    {
        return ReadNumbers<int64_t>(name, Take<std::string>(name, ""));
    }

    template <class Value = double>
    std::vector<Value> ReadNumbers(const std::string& name, const std::string& text) const
    {
        std::vector<Value> values;
        std::istringstream parts(text);
        for (std::string part; std::getline(parts, part, ',');)
        {
            values.push_back(Read<Value>(name, part));
        }
        return values;
    }

    /// A number, or numbers between commas.
    template <class Value>
    void TakeInto(const std::string& name, Value& value)
    {
        if constexpr (std::is_arithmetic_v<Value>)
        {
            value = Take<Value>(name);
        }
        else
        {
            const auto numbers = TakeNumbers<typename Value::value_type>(name);
            value = Value(numbers.data(), numbers.size());
        }
    }

    template <class Value>
    void TakeInto(const std::string& name, std::vector<Value>& values)
    {
        values = TakeNumbers<Value>(name);
    }

    /// Its id, which gets a number; it is the only record with this one.
    std::string Named(Names& names) const
    {
        if (!names.emplace(id, names.size()).second)
        {
            Refuse("is there twice");
        }
        return id;
    }

    /// Ids between commas, as their numbers; without such a value none.
    std::vector<int> TakeAll(const std::string& name, const Names& known)
    {
        std::vector<int> numbers;
        std::istringstream parts(Take<std::string>(name, ""));
        for (std::string part; std::getline(parts, part, ',');)
        {
            const auto found = known.find(part);
            if (found == known.end())
            {
                Refuse("has " + name + " " + part + ", which no record above is");
            }
            numbers.push_back(found->second);
        }
        return numbers;
    }

    /// The same of just one id.
    int TakeOne(const std::string& name, const Names& known)
    {
        const std::vector<int> numbers = TakeAll(name, known);
        if (numbers.size() != 1)
        {
            Refuse("has not one " + name);
        }
        return numbers.front();
    }

    /// The same, or -1 without such a value.
    int TakeOneOrNone(const std::string& name, const Names& known)
    {
        return Has(name) ? TakeOne(name, known) : -1;
    }

    /// The number of a name that no record needs to have.
    int TakeNew(const std::string& name, Names& names)
    {
        return names.emplace(Take(name), names.size()).first->second;
    }

    /// All that is left.
    Values TakeRest()
    {
        return std::exchange(m_values, {});
    }

    void End() const
    {
        if (!m_values.empty())
        {
            Refuse("has a value that nothing reads, " + m_values.front().first);
        }
    }

    [[noreturn]] void Refuse(const std::string& why) const
    {
        const std::string name = id.empty() ? kind : kind + " " + id;
        std::fprintf(stderr, "%s: %s %s\n", m_place.c_str(), name.c_str(), why.c_str());
        std::exit(2);
    }

  private:
    Values::const_iterator Find(const std::string& name) const
    {
        return std::find_if(m_values.begin(), m_values.end(), [&](const auto& each) { return each.first == name; });
    }

    template <class Value>
    Value Read(const std::string& name, const std::string& text) const
    {
        if constexpr (std::is_same_v<Value, std::string>)
        {
            return text;
        }
        else if constexpr (std::is_same_v<Value, bool>)
        {
            return Read<int>(name, text) != 0;
        }
        else
        {
            Value value{};
            const char* end = text.data() + text.size();
            const char* read = end;
            if constexpr (std::is_integral_v<Value>)
            {
                const auto found = std::from_chars(text.data(), end, value);
                read = found.ec == std::errc() ? found.ptr : nullptr;
            }
            else
            {
                char* stopped = nullptr; // not from_chars, which libc++ has for whole numbers only
                value = std::strtod(text.c_str(), &stopped);
                read = stopped;
            }
            if (text.empty() || read != end)
            {
                Refuse("has " + name + " " + text + ", which is not a number that fits");
            }
            return value;
        }
    }

    std::string m_place;
    Values m_values;
};

inline Record* kRead = nullptr;

/// The record that is being read: members of rows are taken from it, in their order.
inline Record&
From()
{
    return *kRead;
}

/// The row of a record.
template <class Kind>
Kind
Made(Record& record)
{
    kRead = &record;
    return Kind();
}

constexpr uint32_t kUnlimited = std::numeric_limits<uint32_t>::max(); ///< as a buffer: 4 GiB, the most that ns-3 counts

/// What a queue is set to: a type of ns-3's and its attributes, as text.
struct QueueSettings
{
    std::string type;
    Record::Values attributes;
};

inline std::vector<Record>
ReadRecords(const std::string& path)
{
    std::ifstream file(path);
    if (!file)
    {
        std::perror(path.c_str());
        std::exit(1);
    }
    std::vector<Record> records;
    int number = 0;
    for (std::string line; std::getline(file, line);)
    {
        ++number;
        const auto begin = line.find_first_not_of(" \t\r");
        if (begin == std::string::npos || line[begin] == '#')
        {
            continue;
        }
        if (begin == 0 || records.empty())
        {
            records.emplace_back(path + ":" + std::to_string(number));
        }
        records.back().Add(line);
    }
    return records;
}

} // namespace netctrl
