#include "kernels/base/lab/fields.hpp"

namespace tilestep::lab {

void AnyFields::change(Object from, nlohmann::json& to, const Change& by) const {
  for (const Field& field : fields_) {
    if (field.change) field.change(from, to[field.name], by);
  }
}

Moments AnyFields::moments_of_members() const {
  Moments moments;
  for (const Field& field : fields_) {
    if (!field.name.empty()) moments[field.from].push_back(field.name);
  }
  return moments;
}

nlohmann::json AnyFields::write(Object from) const {
  nlohmann::json to = nlohmann::json::object();
  for (const Field& field : fields_) {
    if (!field.write) continue;
    nlohmann::json value = field.write(from);
    if (!value.is_discarded()) to[field.name] = std::move(value);
  }
  return to;
}

void AnyFields::read_object(const Place& from, void* to) const {
  for (const Field& field : fields_) {
    if (!field.read) continue;
    if (field.name.empty()) {
      field.read(from, to);
    } else if (!field.optional) {
      field.read(from.at(field.name), to);
    } else if (const auto at = from.find(field.name)) {
      field.read(*at, to);
    }
  }
}

nlohmann::json AnyFields::columns_to_json(Object list, const Items& items) const {
  nlohmann::json to = nlohmann::json::object();
  for (const Field& field : fields_) {
    if (!field.write) continue;
    nlohmann::json column = nlohmann::json::array();
    bool none = field.optional;
    for (std::size_t i = 0; i < items.size(list); ++i) {
      nlohmann::json value = field.write(items.at(list, i));
      none = none && value.is_discarded();
      column.push_back(value.is_discarded() ? nlohmann::json() : std::move(value));
    }
    if (!none) to[field.name] = std::move(column);
  }
  return to;
}

void AnyFields::read_columns(const Place& from, void* list, const Items& items,
                             std::int64_t count) const {
  for (const Field& field : fields_) {
    if (field.name.empty()) {
      for (std::size_t i = 0; i < items.size(list); ++i) field.read(from, items.at(list, i));
      continue;
    }
    if (field.optional && !from.find(field.name)) continue;
    const Place column = from.at(field.name);
    if (count != kAnyCount) column.require_size(static_cast<std::size_t>(count));
    items.resize(list, column.size());
    count = static_cast<std::int64_t>(items.size(list));  // where any will do, the first column's
    for (std::size_t i = 0; i < items.size(list); ++i) {
      const Place entry = column.at(i);
      if (!field.optional || !entry.json().is_null()) field.read(entry, items.at(list, i));
    }
  }
}

void AnyFields::add(std::string name, std::function<nlohmann::json(Object)> write,
                    std::function<void(const Place&, void*)> read) {
  fields_.push_back({std::move(name), std::move(write), std::move(read)});
  fields_.back().from = here_;
}

void AnyFields::add_flag(std::string name, Locate locate) {
  add_value<bool>(std::move(name), std::move(locate),
                  [](const Place& at, Object, bool& to) { to = at.flag(); });
}

void AnyFields::add_text(std::string name, Locate locate) {
  add_value<std::string>(std::move(name), std::move(locate),
                         [](const Place& at, Object, std::string& to) { to = at.text(); });
}

void AnyFields::add_object(std::string name, Locate locate, FieldsOf fields) {
  add(
      std::move(name), [locate, fields](Object from) { return fields(from)->write(locate(from)); },
      [locate, fields](const Place& at, void* to) { fields(to)->read_object(at, locate(to)); });
  last().change = [locate, fields](Object from, nlohmann::json& to, const Change& by) {
    fields(from)->change(locate(from), to, by);
  };
}

void AnyFields::add_inlined(Locate locate, const AnyFields& fields) {
  for (const Field& field : fields.fields_) {
    Field here;
    here.name = field.name;
    here.optional = field.optional;
    here.from = field.from;
    if (field.change) {
      here.change = [locate, change = field.change](Object from, nlohmann::json& to,
                                                    const Change& by) {
        change(locate(from), to, by);
      };
    }
    if (field.write) {
      here.write = [locate, write = field.write](Object from) { return write(locate(from)); };
    }
    if (field.read) {
      here.read = [locate, read = field.read](const Place& at, void* to) { read(at, locate(to)); };
    }
    fields_.push_back(std::move(here));
  }
}

void AnyFields::add_list(std::string name, Locate locate, Items items, FieldsOf fields,
                         Number count) {
  add(
      std::move(name),
      [locate, items, fields](Object from) {
        const auto each = fields(from);
        const void* const list = locate(from);
        nlohmann::json to = nlohmann::json::array();
        for (std::size_t i = 0; i < items.size(list); ++i) {
          to.push_back(each->write(items.at(list, i)));
        }
        return to;
      },
      [locate, items, fields, count](const Place& at, void* to) {
        const auto each = fields(to);
        void* const list = locate(to);
        const std::int64_t entries = count(to);
        if (entries != kAnyCount) at.require_size(static_cast<std::size_t>(entries));
        items.resize(list, at.size());
        for (std::size_t i = 0; i < items.size(list); ++i) {
          const Place entry = at.at(i);
          each->read_object(entry, items.at(list, i));
        }
      });
  last().change = [locate, items, fields](Object from, nlohmann::json& to, const Change& by) {
    const auto each = fields(from);
    const void* const list = locate(from);
    for (std::size_t i = 0; i < items.size(list); ++i) each->change(items.at(list, i), to[i], by);
  };
  last().moments = [fields](Object from) { return fields(from)->moments_of_members(); };
}

void AnyFields::add_columns(std::string name, Locate locate, Items items, FieldsOf fields,
                            Number count) {
  add(
      std::move(name),
      [locate, items, fields](Object from) {
        return fields(from)->columns_to_json(locate(from), items);
      },
      [locate, items, fields, count](const Place& at, void* to) {
        fields(to)->read_columns(at, locate(to), items, count(to));
      });
  last().moments = [fields](Object from) { return fields(from)->moments_of_members(); };
}

void AnyFields::leave_out(const nlohmann::json& nothing, nlohmann::json instead) {
  last().write = [write = last().write, nothing, instead = std::move(instead)](Object from) {
    nlohmann::json to = write(from);
    return to == nothing ? instead : to;
  };
  last().optional = true;
}

void AnyFields::know(std::function<When(Object)> when,
                     std::function<nlohmann::json(Object, const Change&)> other) {
  last().change = [when, other](Object from, nlohmann::json& to, const Change& by) {
    if (when(from) > by.now) to = other ? other(from, by) : by.other(to);
  };
}

void AnyFields::know_each(std::function<When(Object, std::size_t)> when) {
  Field& field = last();
  field.change = [when, inside = field.change, moments = field.moments](
                     Object from, nlohmann::json& to, const Change& by) {
    if (inside) inside(from, to, by);
    by.mix(to, moments ? moments(from) : Moments(),
           [&](std::size_t place) { return when(from, place); });
  };
}

template void AnyFields::add_whole<int>(std::string, Locate, Number, Number);
template void AnyFields::add_whole<std::int64_t>(std::string, Locate, Number, Number);
template void AnyFields::add_real<float>(std::string, Locate);
template void AnyFields::add_real<double>(std::string, Locate);
template void AnyFields::add_wholes<std::vector<int>>(std::string, Locate, Number, Number, Number);
template void AnyFields::add_reals<std::vector<float>>(std::string, Locate, Number);
template void AnyFields::add_reals<std::vector<double>>(std::string, Locate, Number);

}  // namespace tilestep::lab
