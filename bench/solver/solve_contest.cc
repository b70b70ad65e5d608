#include <shardprop/io/contest.h>
#include "solver/core.h"
#include "solver/reduce.h"
#define private public
#include "solver/dual_bound.h"
#undef private
#include "solver/forest_search.h"
#include <cstdio>
#include <cstdlib>
#include <chrono>
#include <time.h>
using namespace shardprop; using namespace shardprop::solver;
static double now(){timespec t; clock_gettime(CLOCK_THREAD_CPUTIME_ID,&t); return t.tv_sec+1e-9*t.tv_nsec;}
int main(int argc,char**argv){
  double limit=atof(argv[1]); double dual_time=atof(argv[2]);
  for(int i=3;i<argc;i++){
    double t=now();
    auto c=io::read_contest(argv[i],1ull<<31);
    if(!c){std::fputs(to_string(c.error()).c_str(),stderr);return 3;}
    double t1=now();
    Network net(c->problem);
    double t2=now();
    PassSet ps; PassClock clk;
    reduce(net,ps,clk);
    double t3=now();
    double big=0; for(auto&v:net.variables)if(v.alive)for(double x:v.costs)if(x<kInfinity)big=std::max(big,x);
    for(auto&e:net.edges)if(e.alive)for(double x:net.tables.costs(e.table))if(x<kInfinity)big=std::max(big,x);
    Core core(net,big*64);
    double t4=now();
    size_t segs=core.segment_list.size(); size_t ent=0; int mk=0; int withseg=0, deg0=0; size_t md=0;
    for(auto&e:core.edges)ent+=core.choices(e.a)*core.choices(e.b);
    for(int v=0;v<core.size();v++){mk=std::max(mk,core.choices(v)); withseg+=!core.segments(v).empty(); deg0+=core.arcs(v).empty(); md=std::max(md,core.arcs(v).size());}
    std::printf("%s load %.2f net %.2f reduce %.2f core %.2f | vars %d choices %zu maxk %d maxdeg %zu edges %zu entries %zu segs %zu bytes %zu rows %d withseg %d deg0 %d inf %d offset %s\n",argv[i],t1-t,t2-t1,t3-t2,t4-t3,core.size(),core.unary.size(),mk,md,core.edges.size(),ent,segs,core.bytes.size(),core.rows(),withseg,deg0,(int)net.infeasible,solver::to_string(net.offset).c_str());
    double off=(double)net.offset;
    double last=now(),start=now();
    std::atomic<bool> stop=false;
    DualBound dual(core);
    double ub=0;
    { ForestSearch fs(core,1); fs.assign(dual.decode()); fs.run(300000000,stop); ub=fs.best_cost(); std::printf("  first %.10g t %.2f\n",ub+off,now()-start);}
    double gap=0;
    if(getenv("SOFT"))dual.softness_=atof(getenv("SOFT"));
    int it=0, bad=0; int patience=getenv("PAT")?atoi(getenv("PAT")):20;
    start=last=now();
    for(int i=0;i<10;i++)dual.sweep();
    double b=dual.evaluate();
    while(now()-start<dual_time){
      dual.move_prices(ub-b);
      dual.sweep(); it++;
      double old=dual.best_bound();
      b=dual.evaluate();
      if(b>old+1e-5*(ub-old)) bad=0; else if(++bad>=patience){bad=0;dual.step_*=0.7;dual.restore_best();b=dual.best_bound();}
      if(now()-last>dual_time/10){last=now();std::printf("  dual it %d t %.1f bound %.6g best %.6g step %.3g\n",it,now()-start,b+off,dual.best_bound()+off,dual.step_);fflush(stdout);}
    }
    ForestSearch fs(core,1);
    if(dual_time>0){fs.set_prices(dual.best_prices()); dual.restore_best();}
    fs.assign(dual.decode());
    std::printf("  decoded cost %.10g feasible %d\n",fs.cost()+off,(int)fs.feasible());
    start=now(); last=start; double every=0.5;
    while(now()-start<limit){
      fs.run(1000000,stop);
      if(now()-last>every){last=now(); every*=1.4; std::printf("  search t %.1f work %.3g cost %.10g best %.10g\n",now()-start,(double)fs.work(),fs.cost()+off,fs.best_cost()+off);fflush(stdout);}
    }
    if(!fs.best().empty()){
      std::vector<int> x(net.variables.size(),0);
      for(int v=0;v<core.size();v++)x[core.network_variable[v]]=fs.best()[v];
      auto a=net.expand(x);
      auto ev=evaluate(c->problem,a);
      std::printf("FINAL %s cost %s feasible %d\n",argv[i],solver::to_string(ev->cost).c_str(),(int)ev->feasible());
    }
  }
}
