#!/bin/bash
# Eight workers that train one model together: sbatch slurm.sh --config=NAME --data_dir=D --run_dir=D
#
# Preempted, or ended with status 75 because a worker was lost, the job is queued again and goes on
# from the last checkpoint. Slurm's SIGTERM, two minutes before the end of the job's time, makes the
# training save.
#SBATCH --job-name=seq2seq-train
#SBATCH --nodes=8
#SBATCH --ntasks-per-node=1
#SBATCH --gpus-per-node=1
#SBATCH --requeue
#SBATCH --signal=TERM@120

port=2222
workers=$(scontrol show hostnames "$SLURM_JOB_NODELIST" | sed "s/$/:$port/" | paste -sd,)

srun --kill-on-bad-exit=0 bash -c \
  'exec python -m experiments.train --workers="$0" --task_index="$SLURM_PROCID" "$@"' \
  "$workers" "$@"
status=$?
if [ "$status" = 75 ] || [ "$status" = 143 ]; then
  scontrol requeue "$SLURM_JOB_ID"
fi
exit "$status"
