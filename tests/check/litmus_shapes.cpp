#include "check/litmus_shapes.hpp"

namespace belfry::check {
namespace {

using Kind = Instruction::Kind;

constexpr unsigned kX = 0, kY = 1;

Instruction load(unsigned variable) {
  Instruction i;
  i.variable = variable;
  return i;
}
Instruction store(unsigned variable, unsigned value) {
  Instruction i;
  i.kind = Kind::store;
  i.variable = variable;
  i.value = value;
  return i;
}
Instruction fence(const Edge& edge) {
  Instruction i;
  i.kind = edge.kind == Edge::Kind::fence ? Kind::fence : Kind::fence_sequential;
  i.scope = edge.scope;
  return i;
}

/// Two accesses with an edge between them: a fence, or an acquire on the first or a release on the second.
std::vector<Instruction> ordered(Instruction first, Instruction second, const Edge& edge) {
  if (edge.kind == Edge::Kind::none) return {first, second};
  if (edge.kind != Edge::Kind::access) return {first, fence(edge), second};
  if (first.reads()) {
    first.acquire = true;
    first.scope = edge.scope;
  } else {
    second.release = true;
    second.scope = edge.scope;
  }
  return {first, second};
}

std::vector<Edge> edges(bool access, bool sequential, const std::string& access_name) {
  static const std::vector<std::pair<Scope, std::string>> scopes = {
      {Scope::block, "block"}, {Scope::gpu, "gpu"}, {Scope::system, "system"}};
  std::vector<Edge> all = {{"none", Edge::Kind::none, Scope::system}};
  if (access)
    for (const auto& [scope, name] : scopes)
      all.push_back({access_name + "." + name, Edge::Kind::access, scope});
  for (const auto& [scope, name] : scopes) all.push_back({"fence." + name, Edge::Kind::fence, scope});
  if (sequential)
    for (const auto& [scope, name] : scopes)
      all.push_back({"fence.sc." + name, Edge::Kind::fence_sequential, scope});
  return all;
}

std::vector<Placement> placements(unsigned threads) {
  std::vector<Placement> all(4);
  all[0].name = "threads of one block";
  all[1].name = "blocks of one GPU";
  all[2].name = "different GPUs";
  all[3].name = "a GPU and a CPU, in turn";
  for (unsigned t = 0; t < threads; ++t) {
    const int n = static_cast<int>(t);
    all[0].places.push_back(gpu_thread(0, 0));
    all[1].places.push_back(gpu_thread(0, n));
    all[2].places.push_back(gpu_thread(n, 0));
    all[3].places.push_back(t % 2 == 0 ? gpu_thread(0, n) : cpu_thread());
  }
  return all;
}

std::vector<std::string> names(const std::vector<Edge>& all) {
  std::vector<std::string> found;
  for (const Edge& e : all) found.push_back(e.name);
  return found;
}

using Build = std::function<Program(const Placement&, const Edge&, const Edge&)>;

void add(std::vector<LitmusTable>& tables, LitmusTable table, unsigned threads, const std::vector<Edge>& rows,
         const std::vector<Edge>& columns, const Build& build) {
  for (const Placement& placement : placements(threads)) {
    LitmusTable t = table;
    t.placement = placement.name;
    t.columns = names(columns);
    for (const Edge& row : rows) {
      LitmusRow r;
      r.name = row.name;
      for (const Edge& column : columns) r.programs.push_back(build(placement, row, column));
      t.rows.push_back(std::move(r));
    }
    tables.push_back(std::move(t));
  }
}

Program two(const Placement& p, std::vector<Instruction> a, std::vector<Instruction> b) {
  return {{{p.places[0], std::move(a)}, {p.places[1], std::move(b)}}, 2};
}

void add_two_threads(std::vector<LitmusTable>& tables) {
  LitmusTable mp;
  mp.shape = "MP: message passing";
  mp.program = "T0: x = 1; *row*; y = 1. T1: r0 = y; *column*; r1 = x.";
  mp.outcome = "r0 = 1, r1 = 0";
  mp.rows_title = "T0 / T1";
  mp.weak = [](const Results& r) { return r[0] == 1 && r[1] == 0; };
  add(tables, mp, 2, edges(true, false, "release"), edges(true, false, "acquire"),
      [](const Placement& p, const Edge& a, const Edge& b) {
        return two(p, ordered(store(kX, 1), store(kY, 1), a), ordered(load(kY), load(kX), b));
      });

  LitmusTable sb;
  sb.shape = "SB: store buffering";
  sb.program = "T0: x = 1; *row*; r0 = y. T1: y = 1; *column*; r1 = x.";
  sb.outcome = "r0 = 0, r1 = 0";
  sb.rows_title = "T0 / T1";
  sb.weak = [](const Results& r) { return r[0] == 0 && r[1] == 0; };
  add(tables, sb, 2, edges(false, true, ""), edges(false, true, ""),
      [](const Placement& p, const Edge& a, const Edge& b) {
        return two(p, ordered(store(kX, 1), load(kY), a), ordered(store(kY, 1), load(kX), b));
      });

  LitmusTable lb;
  lb.shape = "LB: load buffering";
  lb.program = "T0: r0 = x; *row*; y = 1. T1: r1 = y; *column*; x = 1.";
  lb.outcome = "r0 = 1, r1 = 1";
  lb.rows_title = "T0 / T1";
  lb.weak = [](const Results& r) { return r[0] == 1 && r[1] == 1; };
  add(tables, lb, 2, edges(true, false, "acquire"), edges(true, false, "acquire"),
      [](const Placement& p, const Edge& a, const Edge& b) {
        return two(p, ordered(load(kX), store(kY, 1), a), ordered(load(kY), store(kX, 1), b));
      });

  lb.shape = "LB with releases";
  lb.program = "T0: r0 = x; y = 1 as *row*. T1: r1 = y as *column*; x = 1.";
  add(tables, lb, 2, edges(true, false, "release"), edges(true, false, "acquire"),
      [](const Placement& p, const Edge& a, const Edge& b) {
        std::vector<Instruction> first = ordered(load(kX), store(kY, 1), a);
        if (a.kind == Edge::Kind::access) {
          first[0] = load(kX);
          first[1].release = true;
          first[1].scope = a.scope;
        }
        return two(p, first, ordered(load(kY), store(kX, 1), b));
      });
}

void add_more_threads(std::vector<LitmusTable>& tables) {
  LitmusTable wrc;
  wrc.shape = "WRC: write to read causality";
  wrc.program = "T0: x = 1. T1: r0 = x; *row*; y = 1. T2: r1 = y; *column*; r2 = x.";
  wrc.outcome = "r0 = 1, r1 = 1, r2 = 0";
  wrc.rows_title = "T1 / T2";
  wrc.weak = [](const Results& r) { return r[0] == 1 && r[1] == 1 && r[2] == 0; };
  add(tables, wrc, 3, edges(false, false, ""), edges(true, false, "acquire"),
      [](const Placement& p, const Edge& a, const Edge& b) {
        Program program;
        program.threads = {{p.places[0], {store(kX, 1)}},
                           {p.places[1], ordered(load(kX), store(kY, 1), a)},
                           {p.places[2], ordered(load(kY), load(kX), b)}};
        return program;
      });

  LitmusTable iriw;
  iriw.shape = "IRIW: independent reads of independent writes";
  iriw.program = "T0: x = 1. T1: y = 1. T2: r0 = x; *row*; r1 = y. T3: r2 = y; *column*; r3 = x.";
  iriw.outcome = "r0 = 1, r1 = 0, r2 = 1, r3 = 0";
  iriw.rows_title = "T2 / T3";
  iriw.weak = [](const Results& r) { return r[0] == 1 && r[1] == 0 && r[2] == 1 && r[3] == 0; };
  std::vector<Edge> sides = {{"none", Edge::Kind::none, Scope::system},
                             {"acquire.system", Edge::Kind::access, Scope::system},
                             {"fence.system", Edge::Kind::fence, Scope::system}};
  for (const Edge& e : edges(false, true, ""))
    if (e.kind == Edge::Kind::fence_sequential) sides.push_back(e);
  add(tables, iriw, 4, sides, sides, [](const Placement& p, const Edge& a, const Edge& b) {
    Program program;
    program.threads = {{p.places[0], {store(kX, 1)}},
                       {p.places[1], {store(kY, 1)}},
                       {p.places[2], ordered(load(kX), load(kY), a)},
                       {p.places[3], ordered(load(kY), load(kX), b)}};
    return program;
  });
}

/// Rows are the scope of the first thread's access, columns that of the second's.
void add_one_variable(std::vector<LitmusTable>& tables) {
  std::vector<Edge> scopes;
  for (const auto& [scope, name] : std::vector<std::pair<Scope, std::string>>{
           {Scope::block, "block"}, {Scope::gpu, "gpu"}, {Scope::system, "system"}})
    scopes.push_back({name, Edge::Kind::access, scope});

  LitmusTable corr;
  corr.shape = "CoRR: coherence of two reads";
  corr.program = "T0: x = 1 with scope *row*. T1: r0 = x; r1 = x, both with scope *column*.";
  corr.outcome = "r0 = 1, r1 = 0";
  corr.rows_title = "T0 / T1";
  corr.weak = [](const Results& r) { return r[0] == 1 && r[1] == 0; };
  add(tables, corr, 2, scopes, scopes, [](const Placement& p, const Edge& a, const Edge& b) {
    Instruction write = store(kX, 1), read = load(kX);
    write.scope = a.scope;
    read.scope = b.scope;
    Program program = two(p, {write}, {read, read});
    program.variables = 1;
    return program;
  });

  LitmusTable rmw;
  rmw.shape = "RMW: atomicity of two additions";
  rmw.program = "T0: r0 = fetch_add(x, 1) with scope *row*. T1: r1 = fetch_add(x, 1) with scope *column*.";
  rmw.outcome = "r0 = 0, r1 = 0";
  rmw.rows_title = "T0 / T1";
  rmw.weak = [](const Results& r) { return r[0] == 0 && r[1] == 0; };
  add(tables, rmw, 2, scopes, scopes, [](const Placement& p, const Edge& a, const Edge& b) {
    Instruction first;
    first.kind = Kind::add;
    first.value = 1;
    Instruction second = first;
    first.scope = a.scope;
    second.scope = b.scope;
    Program program = two(p, {first}, {second});
    program.variables = 1;
    return program;
  });
}

}  // namespace

std::vector<LitmusTable> litmus_tables() {
  std::vector<LitmusTable> tables;
  add_two_threads(tables);
  add_one_variable(tables);
  add_more_threads(tables);
  return tables;
}

}  // namespace belfry::check
