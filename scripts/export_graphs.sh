#!/usr/bin/env bash
# Regenerates every graph under examples/graphs and the operator schemas.
# Needs torch 2.13 and transformers in the Python of $SHARDPROP_PYTHON (python3
# from PATH unless set). scripts/export_graphs.sh NAME... makes only those.
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
[[ $wanted != "  " ]] || "$python" -W ignore tools/gen_op_schemas.py

export_graph llama3_8b_train llama3_8b --mode train --device cuda
export_graph llama3_8b_infer llama3_8b --device cuda
export_graph gpt2_124m_train gpt2_124m --mode train --device cuda
export_graph vit_b16_infer vit_b16 --device cuda
export_graph resnet50_train resnet50 --mode train --device cuda
export_graph t5_small_train t5_small --mode train --device cuda
export_graph mixtral_infer mixtral_8x7b --device cuda

for device in cpu cuda; do
  suffix=${device/cpu/}
  suffix=${suffix:+_$suffix}
  export_graph "tiny/llama3_train$suffix" llama3_tiny --mode train --device $device
  export_graph "tiny/llama3_infer$suffix" llama3_tiny --device $device
  export_graph "tiny/gpt2_train$suffix" gpt2_tiny --mode train --device $device
  export_graph "tiny/vit_infer$suffix" vit_tiny --device $device
  export_graph "tiny/t5_train$suffix" t5_tiny --mode train --device $device
  export_graph "tiny/mixtral_infer$suffix" mixtral_tiny --device $device
done
export_graph tiny/resnet_train resnet_tiny --mode train
export_graph tiny/mlp_dynamic mlp_dynamic
export_graph tiny/block_composite block_composite --ir composite
