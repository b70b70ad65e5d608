#include <shardprop/io/contest.h>
#include "solver/core.h"
#include "solver/reduce.h"
#include <cstdio>
#include <cstdlib>
#include <chrono>
using namespace shardprop;
static double now(){return std::chrono::duration<double>(std::chrono::steady_clock::now().time_since_epoch()).count();}
int main(int argc,char**argv){
  for(int i=1;i<argc;i++){
    double t=now();
    auto c=io::read_contest(argv[i],1ull<<31);
    if(!c){std::fputs(to_string(c.error()).c_str(),stderr);return 3;}
    double t1=now();
    solver::Network net(c->problem);
    double t2=now();
    solver::PassSet ps; solver::PassClock clk;
    solver::reduce(net,ps,clk);
    double t3=now();
    solver::Core core(net);
    double t4=now();
    size_t segs=core.segment_list.size(); size_t ent=0; int mk=0; int withseg=0, deg0=0;
    for(auto&e:core.edges)ent+=core.choices(e.a)*core.choices(e.b);
    for(int v=0;v<core.size();v++){mk=std::max(mk,core.choices(v)); withseg+=!core.segments(v).empty(); deg0+=core.arcs(v).empty();}
    std::printf("%s load %.2f net %.2f reduce %.2f core %.2f | vars %d choices %zu maxk %d edges %zu entries %zu segs %zu bytes %zu rows %d withseg %d deg0 %d inf %d offset %s\n",argv[i],t1-t,t2-t1,t3-t2,t4-t3,core.size(),core.unary.size(),mk,core.edges.size(),ent,segs,core.bytes.size(),core.rows(),withseg,deg0,(int)net.infeasible,solver::to_string(net.offset).c_str());
    for(auto&s:clk.stats())std::printf("   %s %zu %.2f\n",std::string(pass_name(s.pass)).c_str(),(size_t)s.runs,s.seconds);
  }
}
