"""Calibrations over time: one lens, and a gravity that moves smoothly.

    frames      pictures with times, from a file or a camera
    change_detector  when frames that disagree are outliers, and when they are a change
    turns       how the camera turned from frame to frame, by optical flow
    heading     such turns, one after the other
    intrinsics  information filter of the lens that the frames share
    noise       how cameras move and frames err, by chance
    motion      Kalman filter and smoother of gravity on the sphere
    track       both together: calibrations of frames to calibrations of the video
    records     a line of JSON per frame, which is also what a run is resumed from
    stabilise   the video turned upright
    plot        roll, pitch and field of view over time

Filters take means and covariances and know nothing of networks or files.
"""
