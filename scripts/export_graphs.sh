#!/usr/bin/env bash
# Regenerates every graph under examples/graphs, the operator schemas and the
# archives that the tests read. The script needs torch 2.13 and transformers in
# $SHARDPROP_PYTHON (default: python3 from PATH). scripts/export_graphs.sh
# NAME... writes only these graphs.
set -euo pipefail
cd "$(dirname "$0")/.."

python=${SHARDPROP_PYTHON:-python3}
out=examples/graphs
wanted=" $* "

# export_graph FILE MODEL FLAGS...
export_graph() {
  local name=$1
  shift
  if [[ $wanted == "  " || $wanted == *" $name "* ]]; then
    "$python" -W ignore tools/export_model.py "$@" -o "$out/$name.json.gz"
  fi
}

mkdir -p "$out/tiny"
if [[ $wanted == "  " ]]; then
  "$python" -W ignore tools/gen_op_schemas.py
  "$python" -W ignore tools/make_pt2_fixtures.py
fi

export_graph llama3_8b_train llama3_8b --mode train --device cuda
export_graph llama3_8b_infer llama3_8b --device cuda
export_graph gpt2_124m_train gpt2_124m --mode train --device cuda
export_graph vit_b16_infer vit_b16 --device cuda
export_graph resnet50_train resnet50 --mode train --device cuda
export_graph t5_small_train t5_small --mode train --device cuda
export_graph mixtral_infer mixtral_8x7b --device cuda
export_graph deepseek_moe_train deepseek_moe_8 --mode train --device cuda

export_graph tiny/llama3_train llama3_tiny --mode train
export_graph tiny/llama3_train_cuda llama3_tiny_bf16 --mode train --device cuda
export_graph tiny/llama3_infer llama3_tiny
export_graph tiny/llama3_infer_cuda llama3_tiny_bf16 --device cuda
export_graph tiny/gpt2_train gpt2_tiny --mode train
export_graph tiny/gpt2_train_cuda gpt2_tiny --mode train --device cuda
export_graph tiny/vit_infer vit_tiny
export_graph tiny/vit_infer_cuda vit_tiny --device cuda
export_graph tiny/t5_train t5_tiny --mode train
export_graph tiny/t5_train_cuda t5_tiny --mode train --device cuda
export_graph tiny/mixtral_infer mixtral_tiny
export_graph tiny/mixtral_infer_cuda mixtral_tiny_bf16 --device cuda
export_graph tiny/deepseek_moe_train deepseek_moe_tiny --mode train
export_graph tiny/resnet_train resnet_tiny --mode train
export_graph tiny/mlp_dynamic mlp_dynamic
export_graph tiny/block_composite block_composite --ir composite
